"""The pod's row."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.apiserver.printers.pods import pod_cells

NOW = 1_700_000_000.0
RUNNING = {"ready": True, "state": {"running": {}}}


def pod(*statuses, init=(), phase="Running", spec=None, meta=None, **status):
    return {
        "metadata": {"name": "a", "creationTimestamp": "2023-11-14T22:13:10Z", **(meta or {})},
        "spec": {
            "containers": [{"name": f"c{n}"} for n in range(max(len(statuses), 1))],
            "initContainers": [{"name": f"i{n}"} for n in range(len(init))],
            **(spec or {}),
        },
        "status": {
            "phase": phase,
            "containerStatuses": list(statuses),
            "initContainerStatuses": [{"name": f"i{n}", **one} for n, one in enumerate(init)],
            **status,
        },
    }


def waiting(reason):
    return {"state": {"waiting": {"reason": reason}}}


def terminated(**state):
    return {"state": {"terminated": state}}


COMPLETED = terminated(reason="Completed")
FAILED = terminated(reason="Error", exitCode=1)
READY = [{"type": "Ready", "status": "True"}]
INITIALIZED = [{"type": "Initialized", "status": "True"}]
DELETED = {"deletionTimestamp": "2023-11-14T22:13:20Z"}
SIDECAR = {"initContainers": [{"name": "i0", "restartPolicy": "Always"}, {"name": "i1"}]}
# (a pod, READY, STATUS); tests/e2e/test_page.py holds the page's own words against them.
ROWS = [
    (pod(phase="Pending"), "0/1", "Pending"),
    (pod(RUNNING), "1/1", "Running"),
    (pod(waiting("ContainerCreating"), phase="Pending"), "0/1", "ContainerCreating"),
    (pod(RUNNING, waiting("CrashLoopBackOff")), "1/2", "CrashLoopBackOff"),
    (pod(waiting("ErrImagePull"), waiting("CrashLoopBackOff")), "0/2", "ErrImagePull"),
    (pod(terminated(reason="Completed"), phase="Succeeded"), "0/1", "Completed"),
    (pod(terminated(exitCode=3), phase="Failed"), "0/1", "ExitCode:3"),
    (pod(terminated(exitCode=137, signal=9)), "0/1", "Signal:9"),
    (pod(terminated(reason="Completed"), RUNNING), "1/2", "NotReady"),
    (pod(terminated(reason="Completed"), RUNNING,
         conditions=[{"type": "Ready", "status": "True"}]), "1/2", "Running"),
    (pod(phase="Failed", reason="Evicted"), "0/1", "Evicted"),
    (pod(init=[waiting("PodInitializing")], phase="Pending"), "0/1", "Init:0/1"),
    (pod(init=[terminated(exitCode=0), {"state": {"running": {}}}]), "0/1", "Init:1/2"),
    (pod(init=[terminated(exitCode=1, reason="Error")]), "0/1", "Init:Error"),
    (pod(init=[terminated(exitCode=2)]), "0/1", "Init:ExitCode:2"),
    (pod(init=[waiting("CrashLoopBackOff")]), "0/1", "Init:CrashLoopBackOff"),
    (pod(RUNNING, init=[terminated(exitCode=0)]), "1/1", "Running"),
    (pod(phase="Pending", conditions=[
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
     "0/1", "SchedulingGated"),
    (pod(RUNNING, meta={"deletionTimestamp": "2023-11-14T22:13:20Z"}), "1/1", "Terminating"),
    (pod(RUNNING, reason="NodeLost", meta={"deletionTimestamp": "2023-11-14T22:13:20Z"}),
     "1/1", "Unknown"),
    (pod(phase="Succeeded", meta={"deletionTimestamp": "2023-11-14T22:13:20Z"}),
     "0/1", "Succeeded"),
    (pod(COMPLETED, FAILED, phase="Failed"), "0/2", "Error"),
    (pod(COMPLETED, RUNNING, FAILED), "1/3", "Error"),
    (pod(COMPLETED, RUNNING, FAILED, conditions=READY), "1/3", "Running"),
    (pod(COMPLETED, terminated(exitCode=3), FAILED, phase="Failed"), "0/3", "ExitCode:3"),
    (pod(FAILED, COMPLETED, phase="Failed"), "0/2", "Error"),
    (pod(waiting("CrashLoopBackOff"), FAILED), "0/2", "CrashLoopBackOff"),
    (pod(COMPLETED, waiting("CrashLoopBackOff")), "0/2", "Completed"),
    (pod(terminated()), "0/1", "ExitCode:0"),
    (pod(RUNNING, init=[waiting("CrashLoopBackOff")], conditions=INITIALIZED),
     "1/1", "Init:CrashLoopBackOff"),
    (pod(COMPLETED, init=[waiting("PodInitializing")], conditions=INITIALIZED),
     "0/1", "Completed"),
    (pod(init=[{"started": True, "state": {"running": {}}}, waiting("")], spec=SIDECAR),
     "0/2", "Init:1/2"),
    (pod(init=[{"state": {"running": {}}}], spec=SIDECAR), "0/2", "Init:0/2"),
    (pod(FAILED, phase="Failed", meta=DELETED), "0/1", "Error"),
    (pod(phase="Failed", reason="Evicted", conditions=[
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
     "0/1", "SchedulingGated"),
    (pod(phase=""), "0/1", ""),
]  # fmt: skip


@pytest.mark.parametrize(("given", "ready", "word"), ROWS)
def test_ready_and_status(given, ready, word):
    assert pod_cells(given, NOW)[1:3] == [ready, word]


def test_before_v1_35_a_completed_pod_says_nothing_of_what_failed():
    with features.used(Release("1.34")):
        assert pod_cells(pod(COMPLETED, FAILED, phase="Failed"), NOW)[2] == "Completed"
        assert pod_cells(pod(COMPLETED, RUNNING, FAILED), NOW)[2] == "NotReady"


def test_sidecars_count_as_containers_and_keep_their_restarts():
    sidecar = {"name": "i0", "restartPolicy": "Always"}
    status = {"started": True, "ready": True, "restartCount": 2, "state": {"running": {}}}
    given = pod(RUNNING, init=[status], spec={"initContainers": [sidecar]})
    assert pod_cells(given, NOW)[1:4] == ["2/2", "Running", "2"]


def test_restarts_say_how_long_ago_the_last_one_was():
    before = {"lastState": {"terminated": {"finishedAt": "2023-11-14T22:13:15Z"}}}
    one = {**RUNNING, **before, "restartCount": 3}
    assert pod_cells(pod(one, {**RUNNING, "restartCount": 1}), NOW)[3] == "4 (5s ago)"
    assert pod_cells(pod(RUNNING), NOW)[3] == "0"


def test_the_wide_part():
    given = pod(
        RUNNING,
        podIPs=[{"ip": "10.0.0.7"}],
        spec={"nodeName": "n1", "readinessGates": [{"conditionType": "x"}]},
    )
    assert pod_cells(given, NOW)[4:] == ["10s", "10.0.0.7", "n1", "<none>", "0/1"]
    assert pod_cells({}, NOW)[4:] == ["<unknown>", "<none>", "<none>", "<none>", "<none>"]
