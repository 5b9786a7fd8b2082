"""controllers/nodes/taint_eviction.py: who may stay, and for how long."""

import math

import pytest

from sampan.api.objects import time_text
from sampan.controllers.actions import NOTHING, Delete, Patch, Record
from sampan.controllers.nodes import taint_eviction as eviction

NOW = 1_700_000_000.0
KEY = "node.kubernetes.io/unreachable"


def node(*effects, added=NOW):
    timed = {"timeAdded": time_text(added)} if added is not None else {}
    taints = [{"key": KEY, "effect": effect, **timed} for effect in effects]
    return {"metadata": {"name": "n1"}, "spec": {"taints": taints}}


def pod(*tolerations, **meta):
    return {
        "metadata": {"name": "p", "namespace": "a", "uid": "u", **meta},
        "spec": {"nodeName": "n1", "tolerations": list(tolerations)},
    }


def tolerate(seconds=None):
    toleration = {"key": KEY, "operator": "Exists", "effect": "NoExecute"}
    return toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}


@pytest.mark.parametrize(
    ("who", "where", "seconds"),
    [
        (pod(), node(), math.inf),
        (pod(), node("NoSchedule"), math.inf),
        (pod(), node("NoExecute"), -1),
        (pod(tolerate()), node("NoExecute"), math.inf),
        (pod(tolerate(300)), node("NoExecute"), 300),
        # The first that covers it counts.
        (pod(tolerate(300), tolerate(50)), node("NoExecute"), 300),
        (pod(tolerate(), tolerate(50)), node("NoExecute"), math.inf),
        (pod(tolerate(-5)), node("NoExecute"), 0),
        # The cluster was down while the node had its taint.
        (pod(tolerate(300)), node("NoExecute", added=NOW - 9000), 300),
        (pod(tolerate(300)), node("NoExecute", added=None), 300),
    ],
)
def test_how_long_a_pod_may_stay(who, where, seconds):
    assert eviction.tolerated_seconds(who, where) == seconds


def messages(plan):
    return [action.message for action in plan.actions if isinstance(action, Record)]


def test_a_pod_that_must_go_is_marked_and_deleted():
    found = eviction.ScheduledEvictions().plan(pod(), node("NoExecute"), NOW)
    record, mark, delete = found.actions
    assert isinstance(record, Record)
    assert (record.reason, record.message) == (
        "TaintManagerEviction",
        "Marking for deletion Pod a/p",
    )
    assert isinstance(mark, Patch)
    assert mark.patch["status"]["conditions"][0]["reason"] == "DeletionByTaintManager"
    assert isinstance(delete, Delete)
    assert delete.uid == "u"


def test_the_time_runs_since_the_eviction_was_scheduled():
    scheduled = eviction.ScheduledEvictions()
    first = scheduled.plan(pod(tolerate(300)), node("NoExecute"), NOW)
    assert (list(first.actions), first.again_seconds) == ([], 300)
    later = scheduled.plan(pod(tolerate(300)), node("NoExecute"), NOW + 100)
    assert (list(later.actions), later.again_seconds) == ([], 200)
    over = scheduled.plan(pod(tolerate(300)), node("NoExecute"), NOW + 300)
    assert messages(over) == ["Marking for deletion Pod a/p"]


def test_a_taint_that_is_tolerated_for_ever_starts_no_clock():
    """On a dedicated node, which becomes unreachable long after."""
    scheduled = eviction.ScheduledEvictions()
    who = pod({"key": "dedicated", "operator": "Exists"}, tolerate(300))
    dedicated = {"key": "dedicated", "effect": "NoExecute"}
    where = {"metadata": {"name": "n1"}, "spec": {"taints": [dedicated]}}
    assert scheduled.plan(who, where, NOW) is NOTHING
    where["spec"]["taints"].append({"key": KEY, "effect": "NoExecute"})
    assert scheduled.plan(who, where, NOW + 9000).again_seconds == 300


def test_a_taint_that_goes_takes_the_eviction_with_it_and_an_event_says_so():
    for ends in (
        lambda scheduled: scheduled.plan(pod(tolerate(300)), node(), NOW + 1),
        lambda scheduled: scheduled.cancelled("a/p"),
    ):
        scheduled = eviction.ScheduledEvictions()
        scheduled.plan(pod(tolerate(300)), node("NoExecute"), NOW)
        assert messages(ends(scheduled)) == ["Cancelling deletion of Pod a/p"]
        assert scheduled.when_due(pod(), NOW + 1000) is NOTHING
    assert scheduled.cancelled("a/p") is NOTHING


def test_one_that_is_scheduled_and_no_longer_tolerated_goes_at_once():
    scheduled = eviction.ScheduledEvictions()
    scheduled.plan(pod(tolerate(300)), node("NoExecute"), NOW)
    found = scheduled.plan(pod(), node("NoExecute"), NOW + 1)
    assert messages(found) == ["Cancelling deletion of Pod a/p", "Marking for deletion Pod a/p"]


def test_who_was_scheduled_goes_though_its_node_is_gone():
    scheduled = eviction.ScheduledEvictions()
    scheduled.plan(pod(tolerate(300)), node("NoExecute"), NOW)
    assert scheduled.when_due(pod(), NOW + 299).again_seconds == 1
    assert messages(scheduled.when_due(pod(), NOW + 300)) == ["Marking for deletion Pod a/p"]
