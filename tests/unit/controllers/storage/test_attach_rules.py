"""When volumes are attached and detached, and what pods hear of it."""

import pytest

from sampan.api.resources import NODES, VOLUME_ATTACHMENTS
from sampan.api.rules.storage import attachment_name
from sampan.controllers.actions import Create, Delete, Outcome, Patch, Record
from sampan.controllers.nodes.pod_gc import OUT_OF_SERVICE
from sampan.controllers.storage.attach_memory import AttachMemory
from sampan.controllers.storage.attach_rules import UNMOUNT_SECONDS, Volume, VolumeState, plan

KEY = Volume("d.example.com", "h")
NAME = "kubernetes.io/csi/d.example.com^h"
NOW = 1_800_000_000.0


def pod(name, namespace="shop"):
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace, "uid": name}}


def node(name, *, in_use=(), attached=(), ready=True, taints=()):
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}]}
    if in_use:
        status["volumesInUse"] = list(in_use)
    if attached:
        status["volumesAttached"] = [{"name": item, "devicePath": ""} for item in attached]
    spec = {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]}
    return {"metadata": {"name": name, "uid": name}, "spec": spec, "status": status}


def attachment(on, *, attached=True, error="", deleted=False):
    meta = {"name": attachment_name("h", "d.example.com", on), "uid": f"va-{on}",
            "creationTimestamp": "2027-01-15T08:00:00Z"}  # fmt: skip
    if deleted:
        meta["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    status = {"attached": attached}
    if error:
        status["attachError"] = {"message": error, "time": "2027-01-15T08:00:01Z"}
    return {"metadata": meta, "spec": {"nodeName": on}, "status": status}


def state(*nodes, pods=None, attachments=(), modes=("ReadWriteOnce",), now=NOW):
    by_node = {item["spec"]["nodeName"]: item for item in attachments}
    listed = {
        name: [(NAME, item["metadata"]["name"])]
        for name, item in by_node.items()
        if item["status"]["attached"] and "deletionTimestamp" not in item["metadata"]
    }
    volume = {"metadata": {"name": "pv1"}, "spec": {"accessModes": list(modes)}}
    found = {item["metadata"]["name"]: item for item in nodes}
    return VolumeState(KEY, volume, pods or {}, by_node, found, listed, now)


def texts(plan):
    return [(item.reason, item.message) for item in plan.actions if isinstance(item, Record)]


def creations(plan):
    return [item.obj["spec"] for item in plan.actions if isinstance(item, Create)]


def listings(plan):
    return {
        item.name: item.patch["status"]["volumesAttached"]
        for item in plan.actions
        if isinstance(item, Patch) and item.resource is NODES
    }


def deletions(plan):
    if plan.then is None:
        return []
    following = plan.then([Outcome(action) for action in plan.actions])
    assert all(isinstance(item, Delete) for item in following)
    return [item.name for item in following]


def test_a_volume_is_attached_where_a_pod_needs_it():
    made = plan(state(node("n1"), pods={"n1": [pod("a")]}), AttachMemory())
    assert creations(made) == [
        {"attacher": "d.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "pv1"}}
    ]
    [create] = [item for item in made.actions if isinstance(item, Create)]
    assert create.resource is VOLUME_ATTACHMENTS
    assert create.obj["metadata"]["name"] == attachment_name("h", "d.example.com", "n1")


def test_what_is_attached_is_listed_and_told_once():
    memory, pods = AttachMemory(), {"n1": [pod("a")]}
    first = plan(state(node("n1"), pods=pods, attachments=[attachment("n1")]), memory)
    assert listings(first) == {"n1": [{"name": NAME, "devicePath": ""}]}
    assert texts(first) == [
        ("SuccessfulAttachVolume", 'AttachVolume.Attach succeeded for volume "pv1" ')
    ]
    there = node("n1", attached=[NAME], in_use=[NAME])
    again = plan(state(there, pods=pods, attachments=[attachment("n1")]), memory)
    assert list(again.actions) == []
    assert again.again_seconds is None


def test_it_is_detached_when_its_node_has_unmounted_it_and_not_before():
    memory = AttachMemory()
    used = node("n1", attached=[NAME], in_use=[NAME])
    waits = plan(state(used, attachments=[attachment("n1")]), memory)
    assert (list(waits.actions), deletions(waits)) == ([], [])
    free = node("n1", attached=[NAME])
    goes = plan(state(free, attachments=[attachment("n1")]), memory)
    assert listings(goes) == {"n1": None}  # first the node's status …
    assert deletions(goes) == [attachment_name("h", "d.example.com", "n1")]
    failed = goes.then([Outcome(goes.actions[0], error=ValueError())])
    assert list(failed) == []  # … and where that was not written, nothing


@pytest.mark.parametrize(
    ("found", "seconds", "goes"),
    [
        (node("n1", in_use=[NAME], ready=False), UNMOUNT_SECONDS - 1, False),
        (node("n1", in_use=[NAME], ready=False), UNMOUNT_SECONDS, True),
        (node("n1", in_use=[NAME], taints=[OUT_OF_SERVICE]), 0, True),
        (node("n1", in_use=[NAME]), 10 * UNMOUNT_SECONDS, False),
        (None, UNMOUNT_SECONDS - 1, False),
        (None, UNMOUNT_SECONDS, True),
    ],
)
def test_a_node_that_does_not_answer_loses_it_after_six_minutes(found, seconds, goes):
    memory, nodes = AttachMemory(), [found] if found else []
    plan(state(*nodes, attachments=[attachment("n1")]), memory)
    later = plan(state(*nodes, attachments=[attachment("n1")], now=NOW + seconds), memory)
    assert bool(deletions(later)) is goes
    if not goes:
        assert later.again_seconds is not None


def test_a_volume_of_one_node_moves_only_when_it_is_free():
    memory = AttachMemory()
    old, new = node("n1", in_use=[NAME], attached=[NAME]), node("n2")
    both = {"n1": [pod("a"), pod("b", "other")], "n2": [pod("c")]}
    held = plan(state(old, new, pods=both, attachments=[attachment("n1")]), memory)
    assert creations(held) == []
    assert texts(held) == [
        (
            "FailedAttachVolume",
            'Multi-Attach error for volume "pv1" Volume is already used by pod(s) a and 1 pod(s) '
            "in different namespaces",
        )
    ]
    assert texts(plan(state(old, new, pods=both, attachments=[attachment("n1")]), memory)) == []
    leaving = attachment("n1", deleted=True)
    moves = plan(state(old, new, pods={"n2": [pod("c")]}, attachments=[leaving]), AttachMemory())
    assert creations(moves) == []
    assert texts(moves) == [
        (
            "FailedAttachVolume",
            'Multi-Attach error for volume "pv1" Volume is already exclusively attached to one '
            "node and can't be attached to another",
        )
    ]
    free = plan(state(new, pods={"n2": [pod("c")]}), memory)
    assert [spec["nodeName"] for spec in creations(free)] == ["n2"]


@pytest.mark.parametrize("modes", [("ReadWriteMany",), ("ReadWriteOnce", "ReadOnlyMany"), ()])
def test_a_shared_volume_is_attached_to_several(modes):
    pods = {"n1": [pod("a")], "n2": [pod("b")]}
    there = node("n1", attached=[NAME])
    found = state(there, node("n2"), pods=pods, attachments=[attachment("n1")], modes=modes)
    assert [spec["nodeName"] for spec in creations(plan(found, AttachMemory()))] == ["n2"]


def test_an_error_of_the_driver_and_its_silence_are_told():
    memory, pods = AttachMemory(), {"n1": [pod("a")]}
    broken = attachment("n1", attached=False, error="no disk")
    failed = plan(state(node("n1"), pods=pods, attachments=[broken]), memory)
    assert texts(failed) == [
        ("FailedAttachVolume", 'AttachVolume.Attach failed for volume "pv1" : no disk')
    ]
    assert texts(plan(state(node("n1"), pods=pods, attachments=[broken]), memory)) == []
    silent = attachment("n1", attached=False)
    quiet = plan(state(node("n1"), pods=pods, attachments=[silent], now=NOW + 121), memory)
    assert texts(quiet) == [
        (
            "FailedAttachVolume",
            'AttachVolume.Attach failed for volume "pv1" : timed out waiting for external-attacher '
            "of d.example.com CSI driver to attach volume h",
        )
    ]


def test_what_is_wanted_again_stays():
    memory = AttachMemory()
    used = node("n1", in_use=[NAME], attached=[NAME], ready=False)
    plan(state(used, attachments=[attachment("n1")]), memory)
    plan(state(used, pods={"n1": [pod("a")]}, attachments=[attachment("n1")]), memory)
    late = state(used, attachments=[attachment("n1")], now=NOW + UNMOUNT_SECONDS)
    assert deletions(plan(late, memory)) == []  # the six minutes begin anew
