"""What a resize may change, by the gates."""

import pytest

from sampan.api import features
from sampan.api.errors import FieldError
from sampan.api.features import Release
from sampan.api.objects import copy_of
from sampan.api.validation.pod_resize import validate_resize

SMALL, LARGE = {"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}
SETUP = {"name": "setup", "image": "i", "resources": SMALL}
SIDE = {"name": "side", "image": "i", "restartPolicy": "Always", "resources": SMALL}
WHOLE = (
    "[]: Forbidden: resize of pods with pod-level resources is forbidden when "
    "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
)


@pytest.fixture(params=["1.35", "1.37"])
def minor(request):
    with features.used(Release(request.param)):
        yield request.param


def pod(**spec):
    main = {"name": "main", "image": "i", "resources": SMALL}
    return {"metadata": {"name": "p"}, "spec": {"containers": [main], **spec}}


def causes(new, old):
    errors: list[FieldError] = []
    validate_resize(copy_of(new), copy_of(old), errors)
    return [f"{error.field}: {error.message}" for error in errors]


def test_a_sidecar_may_always_be_resized(minor):
    old, new = pod(initContainers=[SIDE]), pod(initContainers=[SIDE | {"resources": LARGE}])
    assert causes(new, old) == []


def test_an_init_container_may_be_by_a_gate(minor):
    old, new = pod(initContainers=[SETUP]), pod(initContainers=[SETUP | {"resources": LARGE}])
    why = "spec: Forbidden: resources for non-sidecar init containers are immutable"
    assert causes(new, old) == ([why] if minor == "1.35" else [])


def test_one_that_takes_a_change_only_at_its_start_may_not():
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    setup = SETUP | {"resizePolicy": policy}
    old, new = pod(initContainers=[setup]), pod(initContainers=[setup | {"resources": LARGE}])
    with features.used(Release("1.37")):
        assert causes(new, old) == [
            "spec.initContainers[0]: Forbidden: non-sidecar init containers with a resize policy "
            "of RestartContainer cannot be resized"
        ]


def test_other_fields_of_init_containers_stay(minor):
    old, new = pod(initContainers=[SIDE]), pod(initContainers=[SIDE | {"image": "j"}])
    at, whose = "spec", "sidecar containers"
    if minor == "1.37":
        at, whose = "spec.initContainers[0]", "init or sidecar containers"
    assert causes(new, old) == [
        f"{at}: Forbidden: only cpu and memory resources for {whose} are mutable"
    ]


def test_the_pod_as_a_whole_may_be_resized_by_a_gate(minor):
    assert causes(pod(resources=LARGE), pod(resources=SMALL)) == (
        [WHOLE] if minor == "1.35" else []
    )


def test_of_the_whole_nothing_is_taken_away_and_only_cpu_and_memory_change():
    had = {"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}, "limits": {"cpu": "2"}}
    with features.used(Release("1.37")):
        assert causes(pod(), pod(resources=had)) == [
            "spec.resources: Forbidden: pod-level resources cannot be removed"
        ]
        kept = {"requests": had["requests"]}
        assert causes(pod(resources=kept), pod(resources=had)) == [
            "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"
        ]
        more = {**had, "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}}
        assert causes(pod(resources=more), pod(resources=had)) == [
            "spec: Forbidden: only cpu and memory resources are mutable at pod-level"
        ]


def test_containers_stay_in_their_order(minor):
    old = pod(initContainers=[SIDE, SETUP])
    assert causes(pod(initContainers=[SETUP, SIDE]), old) == [
        f"spec.initContainers[{at}].name: Forbidden: "
        "initContainers may not be renamed or reordered on resize"
        for at in (0, 1)
    ]
    assert causes(pod(initContainers=[SIDE]), old) == [
        "spec.initContainers: Forbidden: initContainers may not be added or removed on resize"
    ]


def test_a_node_that_tells_no_resources_cannot(minor):
    running = {"containerStatuses": [{"name": "main", "state": {"running": {}}}]}
    old = {**pod(), "status": running}
    assert causes(pod(), old) == ["spec: Forbidden: Pod running on node without support for resize"]
