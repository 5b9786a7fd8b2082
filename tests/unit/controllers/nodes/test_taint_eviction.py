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
    ("who", "where", "until"),
    [
        (pod(), node(), math.inf),
        (pod(), node("NoSchedule"), math.inf),
        (pod(), node("NoExecute"), NOW),
        (pod(tolerate()), node("NoExecute"), math.inf),
        (pod(tolerate(300)), node("NoExecute"), NOW + 280),
        (pod(tolerate(15)), node("NoExecute"), NOW),
        # The first that covers it counts.
        (pod(tolerate(300), tolerate(50)), node("NoExecute"), NOW + 280),
        (pod(tolerate(), tolerate(50)), node("NoExecute"), math.inf),
        (pod(tolerate(-5)), node("NoExecute"), NOW),
        # The cluster was down while the node had its taint.
        (pod(tolerate(300)), node("NoExecute", added=NOW - 9000), NOW + 280),
        (pod(tolerate(300)), node("NoExecute", added=None), NOW + 280),
    ],
)
def test_how_long_a_pod_may_stay(who, where, until):
    assert eviction.stay_until(who, where, NOW, seen_at=NOW - 20) == until


def test_a_pod_that_must_go_is_marked_and_deleted():
    record, mark, delete = eviction.plan(pod(), node("NoExecute"), NOW, NOW).actions
    assert isinstance(record, Record)
    assert record.reason == "TaintManagerEviction"
    assert isinstance(mark, Patch)
    assert mark.patch["status"]["conditions"][0]["reason"] == "DeletionByTaintManager"
    assert isinstance(delete, Delete)
    assert delete.uid == "u"


def test_a_pod_that_goes_already_is_left_alone():
    assert eviction.plan(pod(deletionTimestamp="x"), node("NoExecute"), NOW, NOW) is NOTHING


def test_a_pod_with_time_left_is_looked_at_again():
    assert eviction.plan(pod(tolerate(300)), node("NoExecute"), NOW, NOW).again_seconds == 300
