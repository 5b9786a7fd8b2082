import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.resources import CONFIG_MAPS, NODES, PODS, REPLICA_SETS
from sampan.controllers.cluster.object_graph import ABSENT_REMEMBERED, Item, ObjectGraph, named_by


def owner_reference(uid, kind="ReplicaSet", api_version="apps/v1", block=False):
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": uid,
        "uid": uid,
        "blockOwnerDeletion": block,
    }


def thing(uid, *owners, namespace="ns", deleted=False, finalizers=()):
    meta = {"name": uid, "uid": uid, "ownerReferences": list(owners)}
    if namespace:
        meta["namespace"] = namespace
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if finalizers:
        meta["finalizers"] = list(finalizers)
    return {"metadata": meta}


def item(resource, uid, namespace="ns"):
    return Item(resource.storage_prefix, f"{namespace}/{uid}" if namespace else uid, uid)


RS, POD = thing("rs"), thing("pod", owner_reference("rs"))


def test_a_dependent_of_a_known_owner_needs_no_look():
    graph = ObjectGraph()
    assert graph.changed(REPLICA_SETS, None, RS) == []
    assert graph.changed(PODS, None, POD) == []
    assert graph.dependents_of("rs") == [item(PODS, "pod")]


def test_a_dependent_of_an_unknown_owner_needs_a_look():
    assert ObjectGraph().changed(PODS, None, POD) == [item(PODS, "pod")]


def test_the_end_of_an_owner_concerns_its_dependents():
    graph = ObjectGraph()
    graph.changed(REPLICA_SETS, None, RS)
    graph.changed(PODS, None, POD)
    assert graph.changed(REPLICA_SETS, RS, None) == [item(PODS, "pod")]
    assert graph.is_known_absent(item(REPLICA_SETS, "rs"))
    assert graph.find("rs") is None


def test_a_status_change_concerns_nobody():
    graph = ObjectGraph()
    graph.changed(REPLICA_SETS, None, RS)
    graph.changed(PODS, None, POD)
    assert graph.changed(PODS, POD, {**POD, "status": {"phase": "Running"}}) == []


def test_foreground_deletion_concerns_the_owner_and_all_dependents():
    graph = ObjectGraph()
    graph.changed(REPLICA_SETS, None, RS)
    graph.changed(PODS, None, POD)
    waiting = thing("rs", deleted=True, finalizers=["foregroundDeletion"])
    assert graph.changed(REPLICA_SETS, RS, waiting) == [item(REPLICA_SETS, "rs"), item(PODS, "pod")]
    assert graph.changed(REPLICA_SETS, waiting, waiting) == []
    # A dependent that turns up now must go, too; and the last one's end frees the owner.
    late = thing("late", owner_reference("rs"))
    assert graph.changed(PODS, None, late) == [item(PODS, "late")]
    assert graph.changed(PODS, POD, None) == [item(REPLICA_SETS, "rs")]


def test_a_reference_that_blocks_no_longer_concerns_the_waiting_owner():
    graph = ObjectGraph()
    waiting = thing("rs", deleted=True, finalizers=["foregroundDeletion"])
    graph.changed(REPLICA_SETS, None, waiting)
    blocking = thing("pod", owner_reference("rs", block=True))
    graph.changed(PODS, None, blocking)
    assert item(REPLICA_SETS, "rs") in graph.changed(PODS, blocking, POD)
    assert graph.changed(PODS, POD, thing("pod")) == [item(REPLICA_SETS, "rs")]
    assert graph.dependents_of("rs") == []


def test_orphaning_concerns_the_owner():
    graph = ObjectGraph()
    graph.changed(REPLICA_SETS, None, RS)
    orphaning = thing("rs", deleted=True, finalizers=["orphan"])
    assert graph.changed(REPLICA_SETS, RS, orphaning) == [item(REPLICA_SETS, "rs")]


def test_an_owner_in_another_namespace_makes_the_dependent_suspicious_in_either_order():
    elsewhere = thing("rs", namespace="other")
    graph = ObjectGraph()
    graph.changed(REPLICA_SETS, None, elsewhere)
    assert graph.changed(PODS, None, POD) == [item(PODS, "pod")]
    graph = ObjectGraph()
    graph.changed(PODS, None, POD)
    assert graph.changed(REPLICA_SETS, None, elsewhere) == [item(PODS, "pod")]


def test_references_lead_to_items():
    assert named_by(owner_reference("rs"), "ns") == item(REPLICA_SETS, "rs")
    assert named_by(owner_reference("n", "Node", "v1"), "ns") == item(NODES, "n", "")
    assert named_by(owner_reference("x", "Widget", "example.com/v1"), "ns") is None
    assert named_by(owner_reference("rs"), "") is None  # a namespaced owner of a cluster's thing


def test_absent_owners_are_remembered_within_bounds():
    graph = ObjectGraph()
    for number in range(ABSENT_REMEMBERED + 1):
        graph.found_absent(item(PODS, str(number)))
    assert not graph.is_known_absent(item(PODS, "0"))
    assert graph.is_known_absent(item(PODS, "1"))


UIDS = st.sampled_from("abcd")
STEPS = st.lists(st.tuples(UIDS, st.none() | st.lists(UIDS, max_size=3, unique=True)), max_size=25)


@pytest.mark.slow
@given(STEPS)
def test_dependents_are_always_exactly_those_that_name_the_owner(steps):
    graph, objects = ObjectGraph(), {}
    for uid, owners in steps:
        old = objects.pop(uid, None)
        new = None
        if owners is not None:
            references = [owner_reference(one, "ConfigMap", "v1") for one in owners if one != uid]
            new = objects[uid] = thing(uid, *references)
        graph.changed(CONFIG_MAPS, old, new)
        for owner in "abcd":
            expected = {
                name
                for name, obj in objects.items()
                if owner in [one["uid"] for one in obj["metadata"]["ownerReferences"]]
            }
            assert {one.uid for one in graph.dependents_of(owner)} == expected
        assert len(graph) == len(objects)
