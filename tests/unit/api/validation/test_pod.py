"""Pods: the subresources that change one."""

from sampan.api.objects import copy_of
from sampan.api.validation.pod import validate_ephemeral_containers
from sampan.api.validation.pod import validate_resized as validate_resize

POD = {
    "metadata": {"name": "p", "namespace": "d"},
    "spec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "serviceAccountName": "default",
        "containers": [
            {
                "name": "c",
                "image": "i",
                "imagePullPolicy": "Always",
                "terminationMessagePolicy": "File",
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
    },
}
DEBUGGER = {
    "name": "dbg",
    "image": "i",
    "imagePullPolicy": "Always",
    "terminationMessagePolicy": "File",
}


def causes(judge, new, old):
    errors = []
    judge(new, old, errors)
    return [str(one) for one in errors]


def with_debugger(**changes):
    pod = copy_of(POD)
    pod["spec"]["ephemeralContainers"] = [{**DEBUGGER, **changes}]
    return pod


def test_an_ephemeral_container_may_be_added():
    assert causes(validate_ephemeral_containers, with_debugger(), POD) == []


def test_an_ephemeral_container_may_not_be_taken_away_or_changed():
    gone = causes(validate_ephemeral_containers, POD, with_debugger())
    existing = 'spec.ephemeralContainers: Forbidden: existing ephemeral containers "dbg" may not be'
    assert gone == [f"{existing} removed\n"]
    changed = causes(validate_ephemeral_containers, with_debugger(image="j"), with_debugger())
    assert changed[0].startswith(f"{existing} changed")


def test_a_mirror_pod_takes_no_ephemeral_containers():
    mirror, new = copy_of(POD), with_debugger()
    for pod in (mirror, new):
        pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        pod["spec"]["nodeName"] = "n"
    found = causes(validate_ephemeral_containers, new, mirror)
    assert found == ["[]: Forbidden: static pods do not support ephemeral containers"]


def test_a_resize_may_change_resources_and_nothing_else():
    """[N6]"""
    resized = copy_of(POD)
    resized["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    assert causes(validate_resize, resized, POD) == []
    resized["spec"]["containers"][0]["image"] = "j"
    found = causes(validate_resize, resized, POD)
    assert found[0].startswith("spec: Forbidden: only cpu and memory resources are mutable")


def test_a_resize_may_not_change_the_class_or_take_amounts_away():
    """[N6]"""
    resized = copy_of(POD)
    resized["spec"]["containers"][0]["resources"] = {}
    assert causes(validate_resize, resized, POD) == [
        'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
        "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
    ]


def test_a_resize_may_not_change_other_resources():
    resized = copy_of(POD)
    resized["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = "1Gi"
    found = causes(validate_resize, resized, POD)
    assert [one.partition("\n")[0] for one in found] == [
        "spec: Forbidden: only cpu and memory resources are mutable"
    ]


def test_a_static_pod_is_not_resized():
    mirror = copy_of(POD)
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    mirror["spec"]["nodeName"] = "n"
    found = causes(validate_resize, mirror, mirror)
    assert found == ["[]: Forbidden: static pods cannot be resized"]
