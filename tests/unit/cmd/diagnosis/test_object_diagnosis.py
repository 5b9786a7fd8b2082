"""cmd/diagnosis/object_diagnosis.py: any object is told what keeps it, and what to do."""

import pytest

from sampan.cmd.diagnosis.claims import why_not_bound
from sampan.cmd.diagnosis.finding_lines import finding_lines, finding_objects
from sampan.cmd.diagnosis.object_diagnosis import PodFacts, object_findings, state_of
from sampan.cmd.diagnosis.pod_diagnosis import diagnosis


def obj(kind, spec=None, **status):
    return {"kind": kind, "metadata": {"name": "x"}, "spec": spec or {}, "status": status}


def condition(kind, status, reason="", message=""):
    return {"type": kind, "status": status, "reason": reason, "message": message}


def warning(reason, message):
    return {"type": "Warning", "reason": reason, "message": message,
            "involvedObject": {"kind": "Deployment"}}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "state"),
    [
        (obj("Deployment", {"replicas": 3}, readyReplicas=1), "1 of 3 replicas are ready"),
        (obj("Deployment", {"paused": True}), "0 of 1 replicas are ready, paused"),
        (obj("DaemonSet", {}, desiredNumberScheduled=2, numberReady=1), "1 of 2 pods are ready"),
        (obj("Job", {"completions": 2}, failed=4), "0 of 2 completions, 0 active, 4 failed"),
        (obj("CronJob", {"suspend": True}), "suspended, last run never"),
        (obj("HorizontalPodAutoscaler", {}, currentReplicas=1, desiredReplicas=2),
         "1 replicas, 2 wanted"),
        (obj("Node", {}, conditions=[condition("Ready", "True")]), "Ready"),
        (obj("PersistentVolumeClaim", {}, phase="Bound"), "phase Bound"),
        (obj("Widget"), "it exists"),
    ],
)  # fmt: skip
def test_the_state_is_one_clause(given, state):
    assert state_of(given) == state


@pytest.mark.parametrize(
    ("given", "what", "advice"),
    [
        (obj("Deployment", {}, conditions=[condition("Progressing", "False",
             "ProgressDeadlineExceeded", "it took too long")]), "Progressing=False", "undo"),
        (obj("Deployment", {}, conditions=[condition("ReplicaFailure", "True", "FailedCreate",
             "pods is forbidden: exceeded quota: q")]), "ReplicaFailure=True", "ResourceQuota"),
        (obj("Job", {}, conditions=[condition("Failed", "True", "BackoffLimitExceeded")]),
         "Failed=True", "logs"),
        (obj("HorizontalPodAutoscaler", {}, conditions=[condition("AbleToScale", "False",
             "FailedGetScale", 'deployments "x" not found')]), "AbleToScale=False", "target"),
        (obj("Node", {}, conditions=[condition("Ready", "Unknown", "NodeStatusUnknown")]),
         "Ready=Unknown", "kubelet"),
        (obj("Node", {"unschedulable": True}), "cordoned", "uncordon"),
        (obj("Widget", {}, conditions=[condition("Ready", "False", "Odd", "broken")]),
         "Ready=False", ""),
        (obj("Deployment", {"replicas": 0}), "scaled to 0", "--replicas=1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found_with_advice(given, what, advice):
    [found] = object_findings(given)
    assert found.what == what
    assert advice in found.advice


def test_good_conditions_are_no_findings():
    good = [condition("Available", "True"), condition("Progressing", "True")]
    assert object_findings(obj("Deployment", {}, conditions=good)) == []
    pressure = [condition("Ready", "True"), condition("DiskPressure", "False")]
    assert object_findings(obj("Node", {}, conditions=pressure)) == []


def test_who_holds_an_object_that_is_deleted_is_named():
    held = obj("Widget")
    held["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]}
    [found] = object_findings(held)
    assert "a.b/c" in found.why


def pod(name, **status):
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {}, "status": status}


def test_the_troubles_of_its_pods_are_its_own():
    pending = pod("p", phase="Pending", conditions=[
        condition("PodScheduled", "False", "Unschedulable", "0/1 nodes")])  # fmt: skip
    crashing = pod("q", phase="Running", containerStatuses=[{
        "name": "c", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}])  # fmt: skip
    healthy = pod("r", phase="Running", conditions=[condition("Ready", "True")])
    its_pods = [PodFacts(pending), PodFacts(crashing), PodFacts(healthy)]
    found = object_findings(obj("Deployment"), (), its_pods)
    assert [finding.where for finding in found] == ["pod p", "pod q, container c"]
    assert "sampan why pod/p" in found[0].advice
    many = [PodFacts(pod(f"p{number}", phase="Pending", conditions=[
        condition("PodScheduled", "False", "", "no")])) for number in range(9)]  # fmt: skip
    assert object_findings(obj("Deployment"), (), many)[-1].why.startswith("6 other pods")


@pytest.mark.parametrize(
    ("node", "what"), [(None, ["gone"]), (obj("Node"), []), ({}, [])]
)  # the last: it may not be read
def test_the_node_of_its_pod_is_missed_only_where_it_is_gone(node, what):
    placed = pod("p", phase="Running") | {"spec": {"nodeName": "a"}}
    found = object_findings(obj("Deployment"), (), [PodFacts(placed, node=node)])
    assert [finding.what for finding in found] == what


def test_warnings_are_said_once_and_not_what_a_condition_says():
    failed = obj(
        "Deployment", {}, conditions=[condition("ReplicaFailure", "True", "F", "too much")]
    )
    events = [warning("F", "too much"), warning("G", "bb"), warning("G", "bb"), warning("H", "xyz")]
    found = object_findings(failed, events)
    assert [finding.what for finding in found] == ["ReplicaFailure=True", "G", "H"]


@pytest.mark.parametrize(
    ("claimed", "mode", "why", "advice"),
    [
        ("", "", "names no StorageClass", "kubectl get storageclass"),
        ("fast", "", "there is no StorageClass fast", "create it"),
        ("local", "WaitForFirstConsumer", "waits for the first pod", "nothing is wrong"),
        ("local", "Immediate", "x.io/p has not made", "does x.io/p run?"),
    ],
)
def test_a_claim_without_a_volume(claimed, mode, why, advice):
    classes = [{"kind": "StorageClass", "metadata": {"name": "local"}, "provisioner": "x.io/p",
                "volumeBindingMode": mode}]  # fmt: skip
    claim = {"metadata": {"name": "c"}, "spec": {"storageClassName": claimed}}
    said, to_do = why_not_bound(claim, classes)
    assert why in said
    assert advice in to_do


def test_an_image_that_is_always_pulled_is_told_about_the_policy():
    waiting = {"name": "c", "state": {"waiting": {"reason": "ErrImagePull", "message": "refused"}}}
    ill = pod("p", containerStatuses=[waiting], phase="Pending")
    for policy, is_said in (("Always", True), ("IfNotPresent", False)):
        ill["spec"] = {"containers": [{"name": "c", "imagePullPolicy": policy}]}
        [found] = diagnosis(ill)
        assert ("set IfNotPresent" in found.advice) == is_said


def test_findings_are_lines_and_objects():
    found = object_findings(obj("Node", {"unschedulable": True}))
    assert "What to do:" in finding_lines(found)
    assert finding_objects(found)[0]["what"] == "cordoned"
    assert finding_lines([]) == []


def test_a_route_and_a_gateway_tell_of_each_parent_and_listener():
    def bad(kind, reason, status="False"):
        return {"type": kind, "status": status, "reason": reason, "message": "why"}

    route = {
        "kind": "HTTPRoute",
        "metadata": {"name": "r"},
        "spec": {"parentRefs": [{"name": "gw"}]},
        "status": {
            "parents": [
                {
                    "parentRef": {"name": "gw"},
                    "conditions": [
                        bad("Accepted", "NotAllowedByListeners"),
                        bad("ResolvedRefs", "ResolvedRefs", "True"),
                    ],
                }
            ]
        },
    }
    (found,) = object_findings(route)
    assert (found.where, found.what) == ("httproute r at gw", "Accepted=False")
    assert "allowedRoutes" in found.advice
    (missing,) = object_findings({**route, "status": {}})
    assert missing.what == "not taken up"
    listeners = [{"name": "http", "conditions": [bad("Conflicted", "ProtocolConflict", "True")]}]
    gateway = {"kind": "Gateway", "metadata": {"name": "gw"}, "status": {"listeners": listeners}}
    (found,) = object_findings(gateway)
    assert (found.where, found.what) == ("gateway gw, listener http", "Conflicted=True")


@pytest.mark.parametrize("kind", ["Deployment", "Job", "StatefulSet", "PodDisruptionBudget"])
def test_where_a_controller_fails_it_is_said_once(kind):
    """By condition and event, which say the same."""
    said = "Error syncing by job-controller, will try again: KeyError: 'spec'"
    failing = obj(kind, conditions=[condition("SyncFailed", "True", "FailedSync", said)])
    [finding] = object_findings(failing, [warning("FailedSync", said)], [])
    assert finding.what == "SyncFailed=True"
    assert said in finding.why
    assert "goes on with the others" in finding.advice
    [event] = object_findings(obj(kind), [warning("FailedSync", said)], [])
    assert "goes on with the others" in event.advice
