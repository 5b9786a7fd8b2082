"""Lives of pods, and how full nodes were."""

from sampan.cmd.lab.ledger import Ledger

BEGAN = 1000.0


def pod(uid="u", node="", phase="Pending", conditions=(), cpu="2"):
    return {
        "metadata": {
            "name": f"pod-{uid}", "namespace": "default", "uid": uid,
            "labels": {"lab.sampan.dev/stream": "s"},
            "annotations": {"simulated.sampan.dev/exit-after-seconds": "60"},
        },
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
                 **({"nodeName": node} if node else {})},
        "status": {"phase": phase, "conditions": [*conditions]},
    }  # fmt: skip


def node(name="n", ready="True"):
    return {
        "metadata": {"name": name, "labels": {"node.kubernetes.io/instance-type": "large",
                                              "topology.kubernetes.io/zone": "a"}},
        "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": ready}]},
    }  # fmt: skip


def test_a_life_from_its_arrival_to_its_end():
    ledger = Ledger(BEGAN)
    ledger.node(node(), BEGAN)
    refused = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    states = [
        (10, pod()), (10, pod(conditions=[refused])), (25, pod(node="n")),
        (26, pod(node="n", phase="Running")), (86, pod(node="n", phase="Succeeded")),
    ]  # fmt: skip
    before = None
    for at, state in states:
        ledger.pod(before, state, BEGAN + at)
        before = state
        if at == 10:
            assert ledger.moments[-1].pending == 1
    ledger.close(BEGAN + 100)
    [life] = ledger.lives.values()
    assert (life.arrived, life.scheduled, life.started, life.ended) == (10, 25, 26, 86)
    assert (life.outcome, life.node, life.why_pending) == ("Succeeded", "n", "")
    assert ledger.nodes["n"].held == {"cpu": 2 * 61}
    assert ledger.nodes["n"].pods == 1
    moments = [(each.at, each.used.get("cpu", 0), each.pending) for each in ledger.moments]
    assert moments == [
        (0, 0, 0), (10, 0, 1), (25, 2, 0), (86, 0, 0), (100, 0, 0),
    ]  # fmt: skip
    assert ledger.is_quiet()


def test_why_a_pod_is_pending_is_kept():
    ledger = Ledger(BEGAN)
    refused = {"type": "PodScheduled", "status": "False", "message": "Insufficient cpu"}
    ledger.pod(None, pod(conditions=[refused]), BEGAN)
    [life] = ledger.lives.values()
    assert (life.outcome, life.why_pending) == ("Pending", "Insufficient cpu")


def test_the_preempted_and_by_whom():
    ledger = Ledger(BEGAN)
    ledger.pod(None, pod("victim", node="n", phase="Running"), BEGAN)
    ledger.pod(None, pod("strong"), BEGAN + 5)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    disturbed = pod("victim", node="n", phase="Running", conditions=[target])
    assert not ledger.is_quiet()
    ledger.event({"reason": "Preempted", "involvedObject": {"uid": "victim"},
                  "message": "Preempted by pod strong on node n"})  # fmt: skip
    ledger.pod(disturbed, None, BEGAN + 6)
    victim = ledger.lives["victim"]
    assert (victim.outcome, victim.ended, victim.preempted_by) == ("Preempted", 6, "pod-strong")


def test_a_pod_that_somebody_deletes_and_one_that_fails():
    ledger = Ledger(BEGAN)
    ledger.pod(None, pod("a", node="n"), BEGAN)
    ledger.pod(pod("a", node="n"), None, BEGAN + 1)
    ledger.pod(None, pod("b", node="n", phase="Failed"), BEGAN + 1)
    assert [life.outcome for life in ledger.lives.values()] == ["Deleted", "Failed"]


def test_what_runs_until_the_end_held_its_place_until_then():
    ledger = Ledger(BEGAN)
    ledger.pod(None, pod(node="n", phase="Running"), BEGAN + 10)
    ledger.close(BEGAN + 30)
    assert ledger.nodes["n"].held == {"cpu": 40}


def test_a_node_that_falls_is_a_moment():
    ledger = Ledger(BEGAN)
    ledger.node(node(), BEGAN)
    ledger.node(node(ready="Unknown"), BEGAN + 50)
    assert [(moment.at, moment.nodes) for moment in ledger.moments] == [(0, 1), (50, 0)]
