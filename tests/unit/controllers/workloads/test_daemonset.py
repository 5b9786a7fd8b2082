"""The plan of DaemonSets: one pod on each node that may have it."""

import pytest

from sampan.api.objects import name_of, time_text
from sampan.api.resources import CONTROLLER_REVISIONS, DAEMON_SETS
from sampan.controllers.workloads.daemon_pods import target_node
from sampan.controllers.workloads.daemonset import Situation, plan
from sampan.controllers.workloads.revisions import HASH, current_revision, hash_of
from tests.support.generators.workload_objects import (
    LABELS,
    NOW,
    made_objects,
    owner_of,
    pod_of,
    reasons,
    removed_names,
    status_in,
    without_trouble,
)

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def daemon_set(**spec):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    return owner_of(DAEMON_SETS, **{"updateStrategy": strategy, **spec})


def node(name, labels=None, taints=()):
    return {
        "metadata": {"name": name, "uid": name, "labels": labels or {}},
        "spec": {"taints": list(taints)},
        "status": READY,
    }


def daemon_pod(owner, on, name="", word="", **words):
    labels = {**LABELS, HASH: word or word_of(owner)}
    return pod_of(DAEMON_SETS, owner, name or f"on-{on}", node=on, labels=labels, **words)


def word_of(owner):
    return hash_of(current_revision(DAEMON_SETS, owner, ()).obj)


def planned(owner, nodes, *pods):
    history = [current_revision(DAEMON_SETS, owner, ()).obj]
    return plan(Situation(owner, nodes, pods, history), NOW)


def test_the_template_gets_a_revision_before_anything_else():
    found = plan(Situation(daemon_set(), [node("a")], ()), NOW)
    [action] = found.actions
    assert (action.resource, found.again_seconds) == (CONTROLLER_REVISIONS, 0.0)


def test_each_node_without_a_pod_gets_one_and_who_waits_for_a_gone_node_goes():
    owner = daemon_set()
    nodes = [node("a"), node("b"), node("c")]
    [waiting] = made_objects(planned(owner, [node("gone")]))
    waiting["metadata"] |= {"name": "waiting", "uid": "waiting"}
    found = planned(owner, nodes, daemon_pod(owner, "a"), waiting)
    assert [target_node(pod) for pod in made_objects(found)] == ["b", "c"]
    assert removed_names(found) == ["waiting"]


TAINT = {"key": "k", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("where", "runs", "stays"),
    [
        (node("a"), True, True),
        (node("a", taints=[TAINT]), False, True),
        (node("a", taints=[{"key": "k", "effect": "NoExecute"}]), False, False),
        (node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}]), True, True),
        # What every daemon pod tolerates by itself.
        (
            node("a", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]),
            True,
            True,
        ),
        (
            node("a", taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
            True,
            True,
        ),
    ],
)
def test_taints_keep_new_pods_away_and_some_also_old_ones(where, runs, stays):
    owner = daemon_set()
    assert bool(made_objects(planned(owner, [where]))) is runs
    assert removed_names(planned(owner, [where], daemon_pod(owner, "a"))) == (
        [] if stays else ["on-a"]
    )


def test_a_node_selector_chooses_nodes():
    owner = daemon_set()
    owner["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    found = planned(owner, [node("a"), node("b", {"disk": "ssd"})])
    assert [target_node(pod) for pod in made_objects(found)] == ["b"]


def test_a_failed_pod_is_replaced_and_told_of():
    owner = daemon_set()
    found = planned(owner, [node("a")], daemon_pod(owner, "a", phase="Failed"))
    assert removed_names(found) == ["on-a"]
    assert "FailedDaemonPod" in reasons(without_trouble(found))


def test_an_update_takes_one_old_pod_at_a_time():
    owner = daemon_set()
    nodes = [node("a"), node("b")]
    old = [daemon_pod(owner, one, word="old") for one in ("a", "b")]
    assert len(removed_names(planned(owner, nodes, *old))) == 1
    half = [daemon_pod(owner, "a", ready=False), old[1]]
    assert removed_names(planned(owner, nodes, *half)) == [], "one is unavailable already"
    owner["spec"]["updateStrategy"] = {"type": "OnDelete"}
    assert removed_names(planned(owner, nodes, *old)) == []


def test_a_surge_makes_the_new_pod_before_the_old_one_goes():
    surge = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    owner = daemon_set(updateStrategy=surge)
    nodes = [node("a"), node("b")]
    old = [daemon_pod(owner, one, word="old") for one in ("a", "b")]
    found = planned(owner, nodes, *old)
    assert (len(made_objects(found)), removed_names(found)) == (1, [])
    beside = daemon_pod(owner, "a", name="new-a")
    assert removed_names(planned(owner, nodes, *old, beside)) == ["on-a"]


def test_the_status_counts_nodes():
    owner = daemon_set()
    nodes = [node("a"), node("b"), node("c", taints=[TAINT])]
    pods = [daemon_pod(owner, "a"), daemon_pod(owner, "b", ready=False)]
    status = status_in(without_trouble(planned(owner, nodes, *pods)))
    assert status["desiredNumberScheduled"] == 2
    assert status["currentNumberScheduled"] == 2
    assert (status["numberReady"], status["numberUnavailable"]) == (1, 1)


def test_a_set_that_selects_everything_or_is_deleted_does_nothing():
    empty = daemon_set(selector={})
    assert reasons(planned(empty, [node("a")]).actions) == ["SelectingAll"]
    gone = daemon_set()
    gone["metadata"]["deletionTimestamp"] = time_text(NOW)
    assert list(planned(gone, [node("a")]).actions) == []
    assert name_of(gone) == "web"
