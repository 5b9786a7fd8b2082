import json

from sampan.cmd.diagnosis.pod_diagnosis import diagnosis
from sampan.cmd.verbs.schedule import answer as schedule_answer
from sampan.cmd.verbs.schedule import run as schedule
from sampan.cmd.verbs.why import answer, recorded_decision, run, scheduling
from sampan.scheduler.why.what_if import explain


def node(name, cpu="2"):
    amounts = {"cpu": cpu, "memory": "4Gi", "pods": "10"}
    return {
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {},
        "status": {"allocatable": amounts},
    }


def pod(cpu="1", status=None, **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": "p", "namespace": "default", "uid": "p"}
    return {
        "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec},
        "status": status or {},
    }  # fmt: skip


def test_a_pending_pod_is_told_who_refuses_it_and_what_would_help():
    """[X2]"""
    there = [node("a", "1500m"), node("b", "1500m")]
    assert answer(pod("4"), explain(pod("4"), there)) == [
        "pod default/p is Pending and has no node.",
        "Now: 0/2 nodes are available: 2 Insufficient cpu.",
        "",
        "REFUSED BY         NODES   WHICH",
        "NodeResourcesFit   2       a, b",
        "",
        "CHANGE THAT WOULD HELP       FITS ON NODES",
        "lower cpu request to 1500m   2",
    ]


def test_a_program_is_told_the_same_as_fields():
    there = [node("a", "1500m"), node("b", "1500m")]
    assert scheduling(pod("4"), explain(pod("4"), there)) == {
        "node": None,
        "said": "",
        "message": "0/2 nodes are available: 2 Insufficient cpu.",
        "feasibleNodes": 0,
        "refusedBy": [{"rule": "NodeResourcesFit", "nodes": ["a", "b"], "andMore": False}],
        "best": [],
        "changes": [{"text": "lower cpu request to 1500m", "nodes": 2}],
    }
    many = [node(f"n{number}", "1500m") for number in range(50)]
    [refused] = scheduling(pod("4"), explain(pod("4"), many))["refusedBy"]
    assert refused["andMore"] == (len(refused["nodes"]) < 50)
    fits = scheduling(pod("1"), explain(pod("1"), there))
    assert (fits["feasibleNodes"], fits["refusedBy"], fits["changes"]) == (2, [], [])
    assert {item["node"] for item in fits["best"]} == {"a", "b"}
    json.dumps(fits)


def test_a_pod_that_is_not_ready_or_restarts_is_told_why_and_what_to_do():
    """[X2]"""
    status = {
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
        "containerStatuses": [
            {
                "name": "c", "restartCount": 3,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
                "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
            }
        ],
    }  # fmt: skip
    made = pod(status=status, nodeName="a")
    lines = answer(made, explain(made, [node("a")]), diagnosis(made, (), node("a")))
    assert lines == [
        "pod default/p is on a and is not Ready.",
        "",
        "WHERE         WHAT               WHY",
        "container c   CrashLoopBackOff   3 restart(s); the last run ended: "
        "exit code 137 (OOMKilled)",
        "",
        "What to do:",
        "  container c: it used more memory than its limit allows: raise resources.limits.memory, "
        "or make it use less; `kubectl logs p -c c --previous` shows its last words",
    ]


def test_a_pod_whose_scheduler_does_not_run_is_told_so():
    made = pod(schedulerName="mine")
    lines = answer(made, explain(made, [node("a")]))
    assert lines[1] == "It asks for the scheduler mine, which has said nothing: does it run?"


def test_a_pod_that_is_well_is_told_where_else_it_could_be():
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    made = pod(status=ready, nodeName="a")
    lines = answer(made, explain(made, [node("a")]), diagnosis(made, (), node("a")))
    assert lines[:3] == ["pod default/p is on a and is Ready.", "", "Were it to be placed now:"]


def test_a_remembered_decision_is_shown():
    record = {"when": "T", "chosen": {"node": "n", "points": 7, "feasibleNodes": 2}, "best": []}
    assert recorded_decision(record) == [
        "Decided at T: n, with 7 points, of 2 node(s) that would have done."
    ]


def test_only_some_things_can_be_asked_about(capsys):
    assert run("node/", "default", "", as_json=False) == 2
    assert "cannot be asked about" in capsys.readouterr().err


def test_a_dry_run_against_a_saved_cluster(tmp_path, capsys):
    """[X2]"""
    cluster, pods = tmp_path / "cluster.yaml", tmp_path / "pods.yaml"
    cluster.write_text(
        "kind: List\nitems:\n- kind: Node\n  metadata: {name: n}\n"
        "  status: {allocatable: {cpu: '1', memory: 1Gi, pods: '9'}}\n"
    )
    pods.write_text("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n")
    asked = {"cluster": str(cluster), "namespace": "default", "kubeconfig_path": ""}
    assert schedule([str(pods)], dry=True, **asked) == 0
    assert "default/p   n" in capsys.readouterr().out
    assert schedule([str(pods)], dry=False, **asked) == 2
    for bad in ("not: [closed", "just words", "kind: Node"):
        pods.write_text(bad)
        assert schedule([str(pods)], dry=True, **asked) == 1
    assert schedule([str(tmp_path / "none")], dry=True, **asked) == 1
    assert schedule_answer([]) == [
        "POD   NODE   WHY",
        "",
        "0 of 0 pods would be placed, on 0 node(s).",
    ]
