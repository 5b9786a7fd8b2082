from dataclasses import replace

from sampan.api.errors import Conflict
from sampan.api.resources import EVENTS, EVENTS_V1, PODS, REPLICA_SETS
from sampan.controllers.actions import NOTHING, Delete, Outcome, Patch, Record
from sampan.controllers.cluster.garbage_collector import (
    AT_ONCE,
    Dependent,
    Owner,
    Situation,
    collected_resources,
    plan,
)


def owner_reference(uid, block=True):
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": uid,
        "uid": uid,
        "blockOwnerDeletion": block,
    }


def thing(uid, *owners, deleted=False, finalizers=()):
    meta = {
        "name": uid,
        "namespace": "ns",
        "uid": uid,
        "resourceVersion": "9",
        "ownerReferences": list(owners),
        "finalizers": list(finalizers),
    }
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta}


def situation(obj, owners=(), dependents=(), misplaced=()):
    states = [(reference, state) for reference, state in owners]
    found = [Dependent(PODS, one) for one in dependents]
    return Situation(REPLICA_SETS, obj, states, found, misplaced)


A, B = owner_reference("a"), owner_reference("b")
POD = thing("pod", A, B)


def metadata_of(action):
    assert isinstance(action, Patch)
    return action.patch["metadata"]


def test_an_object_with_living_owners_stays():
    planned = plan(situation(POD, [(A, Owner.LIVES), (B, Owner.LIVES)]))
    assert list(planned.actions) == []


def test_an_object_without_owners_stays():
    assert plan(situation(thing("pod"))) is NOTHING


def test_an_object_whose_owners_are_all_gone_goes():
    [action] = plan(situation(POD, [(A, Owner.ABSENT), (B, Owner.ABSENT)])).actions
    assert action == Delete(REPLICA_SETS, "ns", "pod", "pod", revision=9, propagation="Background")


def test_references_to_gone_owners_are_cut_where_another_lives():
    for gone in (Owner.ABSENT, Owner.WAITS):
        [action] = plan(situation(POD, [(A, gone), (B, Owner.LIVES)])).actions
        assert metadata_of(action) == {
            "ownerReferences": [B],
            "uid": "pod",
            "resourceVersion": "9",
        }


def test_an_owner_of_an_unknown_kind_keeps_the_object():
    planned = plan(situation(POD, [(A, Owner.ABSENT), (B, Owner.UNKNOWN)]))
    assert list(planned.actions) == []


def test_an_owner_that_nobody_can_tell_of_is_asked_for_again():
    assert plan(situation(POD, [(A, Owner.UNKNOWN)])).again_seconds
    unwatched = replace(situation(POD, [(A, Owner.LIVES)]), unwatched=True)
    assert plan(unwatched).again_seconds
    assert plan(situation(POD, [(A, Owner.LIVES)])).again_seconds is None


def test_an_object_that_is_being_deleted_is_left_to_its_fate():
    deleted = thing("pod", A, deleted=True)
    assert plan(situation(deleted, [(A, Owner.ABSENT)])) is NOTHING


def test_earlier_wishes_about_dependents_are_kept():
    for finalizer, propagation in (("orphan", "Orphan"), ("foregroundDeletion", "Foreground")):
        obj = thing("pod", A, finalizers=[finalizer])
        [action] = plan(situation(obj, [(A, Owner.ABSENT)])).actions
        assert action.propagation == propagation


def test_a_dependent_with_dependents_of_a_waiting_owner_goes_in_the_foreground():
    child = thing("child", owner_reference("pod"))
    [action] = plan(situation(thing("pod", A), [(A, Owner.WAITS)], [child])).actions
    assert action.propagation == "Foreground"
    [action] = plan(situation(thing("pod", A), [(A, Owner.WAITS)])).actions
    assert action.propagation == "Background"


def test_a_circle_of_waiting_owners_is_broken():
    child = thing("child", owner_reference("pod"), deleted=True, finalizers=["foregroundDeletion"])
    unblock, delete = plan(situation(thing("pod", A), [(A, Owner.WAITS)], [child])).actions
    assert metadata_of(unblock)["ownerReferences"] == [owner_reference("a", block=False)]
    assert delete.propagation == "Foreground"
    assert delete.revision == 0


def test_a_waiting_owner_is_released_when_nothing_blocks_it():
    owner = thing("a", deleted=True, finalizers=["x", "foregroundDeletion"])
    assert plan(situation(owner, dependents=[thing("pod", A)])) is NOTHING
    free = thing("pod", owner_reference("a", block=False))
    for dependents in ([], [free]):
        [action] = plan(situation(owner, dependents=dependents)).actions
        assert metadata_of(action)["finalizers"] == ["x"]


def test_orphaning_releases_the_dependents_and_then_the_owner():
    owner = thing("a", deleted=True, finalizers=["orphan"])
    planned = plan(situation(owner, dependents=[thing("pod", A, B)]))
    [release] = planned.actions
    assert metadata_of(release)["ownerReferences"] == [B]
    [free] = planned.then([Outcome(release, thing("pod", B))])
    assert metadata_of(free)["finalizers"] == []
    assert planned.then([Outcome(release, error=Conflict("changed"))]) == []


def test_orphaning_of_many_goes_by_parts_and_the_owner_waits_for_the_last():
    owner = thing("a", deleted=True, finalizers=["orphan"])
    many = [thing(f"pod{number}", A) for number in range(AT_ONCE + 1)]
    planned = plan(situation(owner, dependents=many))
    assert len(planned.actions) == AT_ONCE
    assert planned.then is None
    assert planned.again_seconds is not None
    released = [thing(f"pod{number}") for number in range(AT_ONCE)]
    planned = plan(situation(owner, dependents=[*released, many[-1]]))
    assert len(planned.actions) == 1
    assert planned.then is not None


def test_orphaning_without_dependents_releases_the_owner_at_once():
    owner = thing("a", deleted=True, finalizers=["orphan"])
    [action] = plan(situation(owner)).actions
    assert metadata_of(action)["finalizers"] == []


def test_an_owner_in_another_namespace_is_reported_and_counts_as_absent():
    planned = plan(situation(thing("pod", A), [(A, Owner.ABSENT)], misplaced=[A]))
    event, delete = planned.actions
    assert isinstance(event, Record)
    assert (event.type, event.reason) == ("Warning", "OwnerRefInvalidNamespace")
    assert event.message == (
        "ownerRef [apps/v1/ReplicaSet, namespace: ns, name: a, uid: a] "
        'does not exist in namespace "ns"'
    )
    assert isinstance(delete, Delete)


def test_every_kind_but_events_is_collected_once():
    resources = collected_resources()
    assert PODS in resources
    assert EVENTS not in resources
    assert EVENTS_V1 not in resources
    assert len({one.storage_prefix for one in resources}) == len(resources)
