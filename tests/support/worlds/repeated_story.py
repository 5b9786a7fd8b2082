"""A story of many controllers, failures and faults, on virtual time: told twice, it is the same.

Job: a seed → every write of a cluster in which much happens, in order.
Invariant: nothing here chooses by chance or by the machine's time.
"""

import contextlib
import hashlib
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.client.blocking import BlockingClient, NoAnswer
from sampan.client.kubeconfig import load
from sampan.testing import cluster
from sampan.testing.kit.cluster import Cluster

MERGE = "application/merge-patch+json"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/web"
ROOT_CERTIFICATE = "kube-root-ca.crt"  # each run of tests has keys of its own
FAULTS = ("conflict", "error", "lost", "expired", "slow")
_REQUESTS = {"requests": {"cpu": "100m", "memory": "64Mi"}}
_POD: Obj = {"containers": [{"name": "c", "image": "i", "resources": _REQUESTS}]}
_ONCE = {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}


def _set_of_pods(kind: str, name: str, **more: Any) -> Obj:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": _POD}
    spec = {"selector": {"matchLabels": labels}, "template": template, **more}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _object(api_version: str, kind: str, name: str, spec: Obj) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


OBJECTS = (
    _set_of_pods("Deployment", "web", replicas=6),
    _set_of_pods("StatefulSet", "db", replicas=3, serviceName="db"),
    _set_of_pods("DaemonSet", "agent"),
    _object("v1", "Service", "web", {"selector": {"app": "web"}, "ports": [{"port": 80}]}),
    _object("v1", "ResourceQuota", "all", {"hard": {"pods": "100", "requests.cpu": "50"}}),
    _object("v1", "PersistentVolumeClaim", "v", {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
    _object("policy/v1", "PodDisruptionBudget", "web", {
        "minAvailable": 4, "selector": {"matchLabels": {"app": "web"}}}),
    _object("autoscaling/v2", "HorizontalPodAutoscaler", "web", {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 6, "maxReplicas": 9}),
    _object("batch/v1", "Job", "j", {
        "completions": 5, "parallelism": 3, "ttlSecondsAfterFinished": 300, **_ONCE}),
    _object("batch/v1", "CronJob", "c", {
        "schedule": "*/5 * * * *", "jobTemplate": {"spec": _ONCE}}),
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
)  # fmt: skip


def story(seed: int, idle: str = "6m") -> list[str]:
    """Its writes. `idle`: how long everybody is left alone in the middle."""
    with cluster(nodes=4, clock="virtual", seed=seed) as c:
        c.record()
        c.apply(OBJECTS)
        c.clock.advance("1m")
        _write_with_faults(c, seed)
        c.nodes.kill("node-3")
        c.clock.advance(idle)
        pods = c.list("pods", labels="app=web", fields="spec.nodeName!=node-3")
        c.pods.fail(pods[0]["metadata"]["name"])
        c.nodes.drain("node-2", timeout="10m")
        template = {"metadata": {"annotations": {"version": "2"}}}
        c.patch("deploy/web", {"spec": {"replicas": 3, "template": template}})
        c.delete("namespace/other")
        c.delete("statefulset/db")
        c.clock.advance("4m")
        return c.writes()


def digest(lines: list[str]) -> str:
    """Of a story, the same in each run of tests."""
    told = [line.rpartition(" ")[0] if ROOT_CERTIFICATE in line else line for line in lines]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def _write_with_faults(c: Cluster, seed: int) -> None:
    """As a client without patience."""
    connection = load(str(c.kubeconfig), {}, "").connection()
    client = BlockingClient(connection, user_agent="operator", timeout_seconds=60.0)
    with c.faults(seed=seed, rate=0.5, kinds=FAULTS):
        for number in range(20):
            change = {"metadata": {"annotations": {"number": str(number)}}}
            with contextlib.suppress(ApiError, NoAnswer):  # by the plan
                client.json("PATCH", DEPLOYMENT, body=change, content_type=MERGE)
            c.settle()
    client.close()
