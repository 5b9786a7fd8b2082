from sampan.api.rules.storage import node_of_volume
from sampan.controllers.actions import NOTHING
from sampan.controllers.storage.local_provisioner import (
    plan_claim,
    plan_class,
    plan_volume,
)

LOCAL = "sampan.io/local"


def claim(chosen="", **spec):
    marks = {"volume.kubernetes.io/storage-provisioner": LOCAL}
    if chosen:
        marks["volume.kubernetes.io/selected-node"] = chosen
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default", "uid": "u1", "annotations": marks},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "s",
            **spec,
        },
    }


def storage_class(mode="Immediate", **more):
    return {"metadata": {"name": "s"}, "provisioner": LOCAL, "volumeBindingMode": mode, **more}


def node(name, ready="True", **labels):
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def nodes(*listed):
    return {one["metadata"]["name"]: one for one in listed}


def made(plan):
    return plan.actions[1].obj


def test_a_volume_goes_to_the_node_with_the_fewest():
    there = nodes(node("a"), node("b"), node("c", ready="False"))
    first = made(plan_claim(claim(), storage_class(), there, {}))
    assert node_of_volume(first) == "a"
    assert (
        node_of_volume(made(plan_claim(claim(), storage_class(), there, {"other": first}))) == "b"
    )


def test_topologies_of_the_class_are_kept():
    east = {"matchLabelExpressions": [{"key": "zone", "values": ["east"]}]}
    there = nodes(node("a", zone="west"), node("b", zone="east"))
    plan = plan_claim(claim(), storage_class(allowedTopologies=[east]), there, {})
    assert node_of_volume(made(plan)) == "b"


def test_a_class_that_waits_makes_nothing_before_a_node_is_chosen():
    waiting = storage_class("WaitForFirstConsumer")
    there = nodes(node("a"), node("b"))
    assert plan_claim(claim(), waiting, there, {}) == NOTHING
    assert node_of_volume(made(plan_claim(claim("b"), waiting, there, {}))) == "b"


def test_a_chosen_node_that_is_gone_is_to_be_chosen_anew():
    plan = plan_claim(claim("x"), storage_class("WaitForFirstConsumer"), nodes(node("a")), {})
    [patch] = plan.actions
    assert patch.patch["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": None}


def test_a_volume_is_made_once():
    assert plan_claim(claim(), storage_class(), nodes(node("a")), {"pvc-u1": {}}) == NOTHING


def test_our_class_is_not_the_default_where_there_is_one():
    marks = {"storageclass.kubernetes.io/is-default-class": "true"}
    other = {"metadata": {"name": "other", "annotations": marks}}
    assert "annotations" not in plan_class({"other": other}).actions[0].obj["metadata"]
    assert plan_class({"standard": {}}) == NOTHING


def test_volumes_of_others_are_left_alone():
    foreign = {"metadata": {"name": "v"}, "spec": {}, "status": {"phase": "Released"}}
    assert plan_volume(foreign, {}) == NOTHING


def test_a_real_node_that_keeps_no_volumes_is_refused_by_name():
    real = node("a")
    real["status"]["nodeInfo"] = {"containerRuntimeVersion": "containerd://1.6.20"}
    [event] = plan_claim(claim("a"), storage_class(), nodes(real), {}).actions
    assert event.message.endswith("node a keeps no volumes for us")
    [event] = plan_claim(claim(), storage_class(), nodes(real), {}).actions
    assert event.message.endswith("no node is ready to hold a volume")
    real["metadata"]["annotations"] = {"sampan.io/local-volumes": "/volumes"}
    assert made(plan_claim(claim(), storage_class(), nodes(real), {}))["metadata"]["finalizers"]
