from sampan.api.resources import PODS
from sampan.controllers.actions import NOTHING, Delete, Patch
from sampan.controllers.nodes.pod_gc import QUARANTINE_SECONDS, Situation, plan, plan_finished

NOW = 1_700_000_000.0
NODE = {"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def pod(node="n1", deleted=False, phase="Running", name="web", created="2026-01-01T00:00:00Z"):
    meta = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": created}
    if deleted:
        meta["deletionTimestamp"] = created
    return {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": phase}}


def test_a_pod_on_a_living_node_stays():
    assert plan(Situation(pod(), NODE), NOW) is NOTHING
    assert plan(Situation(pod(deleted=True), NODE), NOW) is NOTHING


def test_a_pod_of_a_missing_node_waits_for_the_end_of_the_quarantine():
    planned = plan(Situation(pod(), None, 10.0), NOW)
    assert (list(planned.actions), planned.again_seconds) == ([], QUARANTINE_SECONDS - 10.0)


def test_then_it_fails_and_goes_without_grace():
    patch, delete = plan(Situation(pod(), None, 41.0, True), NOW).actions
    assert isinstance(patch, Patch)
    assert patch.patch["status"]["phase"] == "Failed"
    [condition] = patch.patch["status"]["conditions"]
    assert condition["reason"] == "DeletionByPodGC"
    assert condition["message"] == "PodGC: node no longer exists"
    assert delete == Delete(PODS, "ns", "web", "web", grace_seconds=0)


def test_one_that_had_finished_keeps_its_phase():
    [delete] = plan(Situation(pod(phase="Succeeded"), None, 41.0, True), NOW).actions
    assert isinstance(delete, Delete)


def test_a_pod_without_a_node_goes_only_when_its_deletion_was_asked_for():
    assert plan(Situation(pod(node=""), None), NOW) is NOTHING
    failed, delete = plan(Situation(pod(node="", deleted=True), None), NOW).actions
    assert failed.patch["status"] == {"phase": "Failed"}
    assert isinstance(delete, Delete)


def test_one_of_a_node_out_of_service_fails_and_is_not_called_a_disruption():
    taints = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
    node = {"metadata": {"name": "n1"}, "spec": {"taints": taints}}
    failed, delete = plan(Situation(pod(deleted=True), node), NOW).actions
    assert failed.patch["status"] == {"phase": "Failed"}
    assert isinstance(delete, Delete)


def test_the_oldest_finished_pods_go_first():
    pods = [pod(name=f"p{n}", created=f"2026-01-0{9 - n}T00:00:00Z") for n in range(5)]
    assert plan_finished(pods, 5) is NOTHING
    assert [action.name for action in plan_finished(pods, 3).actions] == ["p4", "p3"]
    pods[0]["status"]["reason"] = "Evicted"
    assert [action.name for action in plan_finished(pods, 3).actions] == ["p0", "p4"]
