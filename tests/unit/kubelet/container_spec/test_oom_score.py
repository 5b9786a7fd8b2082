"""OOM score adjustments [N16]."""

import pytest

from sampan.kubelet.container_spec.oom_score import oom_score

GI = 1 << 30


def make_pod(*containers, init=(), **spec):
    named = [{"name": f"c{n}", **one} for n, one in enumerate(containers or ({},))]
    return {"spec": {"containers": named, "initContainers": list(init), **spec}}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, 1000),
        (
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            -997,
        ),
        ({"requests": {"cpu": "1"}}, 999),
        ({"requests": {"memory": "4Gi"}}, 500),
        ({"requests": {"memory": "8Gi"}}, 3),
    ],
)
def test_the_oom_killer_takes_the_least_guaranteed_first(resources, expected):
    """[N16]"""
    pod = make_pod({"resources": resources})
    assert oom_score(pod, pod["spec"]["containers"][0], 8 << 30) == expected


def test_what_the_node_cannot_do_without_is_killed_last():
    pod = make_pod(priority=2_000_001_000, priorityClassName="system-node-critical")
    assert oom_score(pod, pod["spec"]["containers"][0], 8 << 30) == -997


def test_what_the_pod_asks_for_beyond_its_containers_counts_for_each_of_them():
    pod = make_pod({"resources": {"requests": {"memory": "1Gi"}}},
                   resources={"requests": {"memory": "4Gi"}})  # fmt: skip
    assert oom_score(pod, pod["spec"]["containers"][0], 8 << 30) == 500


def test_critical_to_the_cluster_is_not_critical_to_the_node():
    pod = make_pod(priority=2_000_000_000, priorityClassName="system-cluster-critical")
    assert oom_score(pod, pod["spec"]["containers"][0], 8 * GI) == 1000


def test_pod_level_resources_decide_the_class():
    """A guaranteed pod whose containers say nothing is among the last to go."""
    full = {"cpu": "1", "memory": "1Gi"}
    pod = make_pod({}, resources={"requests": full, "limits": full})
    assert oom_score(pod, pod["spec"]["containers"][0], 8 * GI) == -997


def test_the_rest_is_shared_with_init_containers_too():
    sidecar = {"name": "s", "restartPolicy": "Always"}
    pod = make_pod({"resources": {"requests": {"memory": "2Gi"}}}, init=[sidecar],
                   resources={"requests": {"memory": "4Gi"}})  # fmt: skip
    assert oom_score(pod, pod["spec"]["containers"][0], 8 * GI) == 1000 - 375


def test_a_sidecar_never_goes_before_the_containers_it_serves():
    sidecar = {"name": "s", "restartPolicy": "Always"}
    asking = [{"resources": {"requests": {"memory": f"{gib}Gi"}}} for gib in (4, 2)]
    pod = make_pod(*asking, init=[sidecar])
    assert oom_score(pod, sidecar, 8 * GI) == 750
