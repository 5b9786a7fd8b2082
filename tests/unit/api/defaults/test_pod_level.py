"""What a pod asks for as a whole, filled in."""

import pytest

from sampan.api import features
from sampan.api.defaults.pod import default_pod
from sampan.api.defaults.pod_level import default_early, default_late
from sampan.api.features import Release
from sampan.api.objects import copy_of
from sampan.api.rules.qos import qos_class


def container(**resources):
    return {"name": "c", "image": "i", "resources": resources}


FULL = container(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Gi"})
BARE = {"name": "d", "image": "i"}


def filled(default, resources, *containers):
    spec = {"containers": copy_of(list(containers)), "resources": copy_of(resources)}
    default(spec)
    return spec["resources"]


@pytest.mark.parametrize("default", [default_early, default_late])
def test_nothing_is_made_of_nothing(default):
    assert filled(default, {}, FULL) == {}


def test_requests_come_of_the_containers_and_then_of_the_limits():
    limits = {"cpu": "4", "memory": "2Gi"}
    wanted = {"limits": limits, "requests": {"cpu": "1", "memory": "2Gi"}}
    assert filled(default_early, {"limits": limits}, FULL) == wanted
    assert filled(default_late, {"limits": limits}, FULL) == wanted


def test_early_nothing_comes_of_requests_alone():
    asked = {"requests": {"memory": "1Gi"}}
    assert filled(default_early, asked, FULL) == asked


@pytest.mark.parametrize(
    ("asked", "containers", "limits"),
    [
        ({"cpu": "1"}, (FULL, FULL), {"cpu": "4"}),
        ({"cpu": "8"}, (FULL,), {"cpu": "8"}),
        ({"cpu": "1"}, (FULL, BARE), None),
    ],
)
def test_late_limits_come_of_containers_that_all_have_one(asked, containers, limits):
    found = filled(default_late, {"requests": asked}, *containers)
    assert found.get("limits") == limits


@pytest.mark.parametrize("default", [default_early, default_late])
def test_huge_pages_of_containers_are_the_pod_s(default):
    pages = container(limits={"hugepages-2Mi": "4Mi"})
    found = filled(default, {"limits": {"cpu": "1"}}, pages)
    assert found["limits"]["hugepages-2Mi"] == "4Mi"
    assert found["requests"]["hugepages-2Mi"] == "4Mi"


@pytest.mark.kubernetes("1.37")
def test_with_the_gate_it_waits_for_admission():
    pod = {"spec": {"containers": [copy_of(FULL)], "resources": {"limits": {"cpu": "4"}}}}
    default_pod(pod)
    assert pod["spec"]["resources"] == {"limits": {"cpu": "4"}}
    with features.used(Release("1.35")):
        default_pod(pod)
    assert pod["spec"]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.kubernetes("1.37")
def test_an_empty_whole_says_nothing_of_the_class_by_a_gate():
    pod = {"spec": {"containers": [FULL], "resources": {}}}
    assert qos_class(pod) == "Burstable"
    with features.used(Release("1.35")):
        assert qos_class(pod) == "BestEffort"
