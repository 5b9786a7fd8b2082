"""The plan of ReplicaSets: how many pods to make and to delete, and what the status says."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.errors import Forbidden
from sampan.api.objects import time_text
from sampan.api.resources import REPLICA_SETS
from sampan.controllers.actions import Outcome, Patch
from sampan.controllers.workloads.replica_counts import replica_of
from sampan.controllers.workloads.replicaset import BURST, REPLICA_SET, Situation, plan
from tests.support.generators.workload_objects import (
    LABELS,
    NOW,
    made_objects,
    owner_of,
    pod_of,
    removed_names,
    status_in,
    without_trouble,
)


def replica_set(replicas=3, **words):
    return owner_of(REPLICA_SETS, replicas=replicas, **words)


def planned(owner, *pods, orphans=(), now=NOW):
    return plan(REPLICA_SET, Situation(owner, Counter(map(replica_of, pods)), pods, orphans), now)


def pods_of(owner, count, **words):
    return [pod_of(REPLICA_SETS, owner, f"p{number}", **words) for number in range(count)]


@pytest.mark.parametrize(
    ("replicas", "have", "creations", "deletions"),
    [(3, 0, 3, 0), (3, 3, 0, 0), (2, 5, 0, 3), (0, 2, 0, 2), (0, 0, 0, 0)],
)
def test_the_difference_is_made_or_deleted(replicas, have, creations, deletions):
    owner = replica_set(replicas)
    found = planned(owner, *pods_of(owner, have))
    assert (len(made_objects(found)), len(removed_names(found))) == (creations, deletions)


def test_a_burst_is_bounded():
    found = planned(replica_set(2 * BURST))
    assert len(made_objects(found)) == BURST


def test_new_pods_have_the_template_and_their_controller():
    [pod] = made_objects(planned(replica_set(1)))
    [reference] = pod["metadata"]["ownerReferences"]
    assert pod["metadata"]["generateName"] == "web-"
    assert pod["metadata"]["labels"] == LABELS
    assert (reference["kind"], reference["controller"]) == ("ReplicaSet", True)


def test_pods_that_ended_or_go_are_replaced():
    owner = replica_set(1)
    ended = pod_of(REPLICA_SETS, owner, "ended", phase="Failed")
    going = pod_of(REPLICA_SETS, owner, "going", deleted=True)
    found = planned(owner, ended, going)
    assert len(made_objects(found)) == 1
    assert removed_names(found) == []
    assert status_in(without_trouble(found))["terminatingReplicas"] == 1


def test_pods_that_are_not_ready_go_first():
    owner = replica_set(1)
    slow = pod_of(REPLICA_SETS, owner, "slow", ready=False)
    assert removed_names(planned(owner, *pods_of(owner, 1), slow)) == ["slow"]


def test_a_set_that_is_deleted_makes_and_deletes_nothing():
    owner = replica_set(5)
    owner["metadata"]["deletionTimestamp"] = time_text(NOW)
    assert list(planned(owner).actions) == []


def test_an_orphan_that_matches_is_adopted_and_a_stranger_released():
    owner = replica_set(2)
    orphan = pod_of(REPLICA_SETS, owner, "orphan")
    orphan["metadata"]["ownerReferences"] = []
    stranger = pod_of(REPLICA_SETS, owner, "stranger", labels={"app": "other"})
    found = planned(owner, stranger, orphans=[orphan])
    claims = {action.name: action.patch for action in found.actions if isinstance(action, Patch)}
    assert claims.keys() == {"stranger", "orphan"}
    assert len(made_objects(found)) == 1


def test_the_status_counts_ready_and_available_pods():
    owner = replica_set(3, minReadySeconds=60)
    fresh = pod_of(REPLICA_SETS, owner, "fresh", ready_since=NOW - 10)
    unready = pod_of(REPLICA_SETS, owner, "unready", ready=False)
    found = planned(owner, *pods_of(owner, 1), fresh, unready)
    status = status_in(without_trouble(found))
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (3, 2, 1)
    assert found.again_seconds == 50.0  # then the fresh one is available


def test_what_was_refused_is_a_condition():
    found = planned(replica_set(1))
    outcomes = [Outcome(action, error=Forbidden("quota")) for action in found.actions]
    [condition] = status_in(found.then(outcomes))["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")


@given(st.integers(0, 8), st.integers(0, 8))
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(replicas, have):
    owner = replica_set(replicas)
    pods = pods_of(owner, have)
    first = planned(owner, *pods)
    gone = set(removed_names(first))
    after = [pod for pod in pods if pod["metadata"]["name"] not in gone]
    after += [
        pod_of(REPLICA_SETS, owner, f"new{number}") for number, _ in enumerate(made_objects(first))
    ]
    assert list(planned(owner, *after).actions) == []
