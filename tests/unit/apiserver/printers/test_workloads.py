"""Rows of workloads."""

import pytest

from sampan.apiserver.printers import workloads

NOW = 1_700_000_000.0
META = {"name": "a", "creationTimestamp": "2023-11-14T22:13:10Z"}
TEMPLATE = {"spec": {"containers": [{"name": "x", "image": "i:1"}, {"name": "y", "image": "j"}]}}
SELECTOR = {"matchLabels": {"b": "2", "a": "1"}}


def test_deployments_and_replica_sets():
    spec = {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR}
    status = {"replicas": 3, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}
    obj = {"metadata": META, "spec": spec, "status": status}
    wide = ["x,y", "i:1,j", "a=1,b=2"]
    assert workloads.DEPLOYMENTS.cells(obj, NOW) == ["a", "1/3", 2, 1, "10s", *wide]
    assert workloads.REPLICA_SETS.cells(obj, NOW) == ["a", 3, 3, 1, "10s", *wide]
    assert workloads.STATEFUL_SETS.cells(obj, NOW) == ["a", "1/3", "10s", "x,y", "i:1,j"]


@pytest.mark.parametrize(
    ("spec", "status", "row"),
    [
        ({}, {}, ["Running", "0/1", ""]),
        ({"completions": 3}, {"succeeded": 1, "startTime": "2023-11-14T22:13:18Z"},
         ["Running", "1/3", "2s"]),
        ({"parallelism": 4}, {"succeeded": 1, "startTime": "2023-11-14T22:13:10Z",
                              "completionTime": "2023-11-14T22:13:14Z",
                              "conditions": [{"type": "Complete", "status": "True"}]},
         ["Complete", "1/1 of 4", "4s"]),
        ({}, {"conditions": [{"type": "Suspended", "status": "True"}]}, ["Suspended", "0/1", ""]),
    ],
)  # fmt: skip
def test_jobs(spec, status, row):
    obj = {"metadata": META, "spec": spec, "status": status}
    assert workloads.JOBS.cells(obj, NOW)[1:4] == row


def test_cron_jobs():
    obj = {"metadata": META, "spec": {"schedule": "* * * * *", "suspend": False}}
    assert workloads.CRON_JOBS.cells(obj, NOW)[1:7] == [
        "* * * * *", "<none>", "False", 0, "<none>", "10s",
    ]  # fmt: skip


def test_autoscalers_show_their_metrics():
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}
    pods = {"type": "Pods", "pods": {"target": {"averageValue": "5"}}}
    current = {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 7}},
    }
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "metrics": [cpu, pods, cpu],
            "maxReplicas": 5}  # fmt: skip
    obj = {"metadata": META, "spec": spec, "status": {"currentMetrics": [current]}}
    assert workloads.AUTOSCALERS.cells(obj, NOW)[1:6] == [
        "Deployment/d", "cpu: 7%/80%, <unknown>/5 + 1 more...", "<unset>", 5, 0,
    ]  # fmt: skip


def test_budgets_and_revisions():
    budget = {"metadata": META, "spec": {"minAvailable": "50%"}}
    assert workloads.DISRUPTION_BUDGETS.cells(budget, NOW)[1:4] == ["50%", "N/A", 0]
    owner = {"controller": True, "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"}
    revision = {"metadata": {**META, "ownerReferences": [owner]}, "revision": 2}
    assert workloads.CONTROLLER_REVISIONS.cells(revision, NOW)[1:3] == ["daemonset.apps/d", 2]
