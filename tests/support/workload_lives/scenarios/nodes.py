"""Nodes that are lost, return, are tainted, and pods that are evicted or guarded by budgets."""

from typing import Any

from sampan.api.objects import Obj
from tests.support.workload_lives.manifests import (
    budget,
    daemon_set,
    deployment,
    job,
    made,
    pod,
    replica_set,
    stateful_set,
)
from tests.support.workload_lives.steps import (
    Life,
    Post,
    Step,
    add_node,
    change,
    change_meta,
    change_spec,
    change_status,
    come_back,
    create,
    evict,
    life,
    remove,
    remove_node,
    silence,
    taint,
    wait,
)

_NO_EXECUTE = {"key": "k", "value": "v", "effect": "NoExecute"}
_LOST = "node.kubernetes.io/unreachable"
_OUT = {"key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoExecute"}


def _tolerating(seconds: int | None, key: str = "k") -> dict[str, Any]:
    toleration: Obj = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration["tolerationSeconds"] = seconds
    return {"tolerations": [toleration]}


def _on_n1(**words: Any) -> dict[str, Any]:
    return {"nodeSelector": {"zone": "z1"}, **words}


_NODES = ("nodes",)
_LOSS = {
    "node-lost": life(
        create(deployment(replicas=1, pod=_on_n1())), wait(3), silence("n1"), wait(55),
        shows=_NODES,
    ),
    "node-lost-and-evicted": life(
        create(deployment(replicas=1, pod=_on_n1(**_tolerating(5, _LOST)))), wait(3),
        silence("n1"), wait(62), shows=_NODES,
    ),
    "node-lost-and-back": life(
        create(deployment(replicas=1, pod=_on_n1(**_tolerating(30, _LOST)))), wait(3),
        silence("n1"), wait(55), come_back("n1"), wait(12), shows=_NODES,
    ),
    "node-lost-evicted-and-back": life(
        create(stateful_set(replicas=1, pod=_on_n1(**_tolerating(2, _LOST)))), wait(3),
        silence("n1"), wait(60), come_back("n1"), wait(12), shows=_NODES,
    ),
    "node-lost-with-a-daemon": life(
        create(daemon_set()), wait(4), silence("n1"), wait(55), shows=_NODES
    ),
    "node-lost-with-a-job": life(
        create(job(podReplacementPolicy="Failed", pod={
            "life": "run", **_on_n1(**_tolerating(2, _LOST))})),
        wait(3), silence("n1"), wait(62),
    ),
    "node-lost-and-removed": life(
        create(deployment(replicas=1, pod=_on_n1())), wait(3), silence("n1"), wait(5),
        remove_node("n1"), wait(60),
    ),
    "node-out-of-service": life(
        create(stateful_set(replicas=1, pod=_on_n1())), wait(3), silence("n1"), wait(50),
        change_spec("nodes", "n1", taints=[_OUT]), wait(30),
    ),
    "node-not-ready": life(
        create(deployment(replicas=1, pod=_on_n1(**_tolerating(4,
        "node.kubernetes.io/not-ready")))),
        wait(3), silence("n1"),
        change_status("nodes", "n1", conditions=[{
            "type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "bad"}]),
        wait(16), shows=_NODES,
    ),
    "node-under-pressure": life(
        change_status("nodes", "n1", conditions=[
            {"type": "MemoryPressure", "status": "True", "reason": "r", "message": "m"},
            {"type": "DiskPressure", "status": "True", "reason": "r", "message": "m"},
            {"type": "PIDPressure", "status": "True", "reason": "r", "message": "m"},
            {"type": "NetworkUnavailable", "status": "True", "reason": "r", "message": "m"}]),
        wait(8), create(pod("x", nodeSelector={"zone": "z1"})), wait(4),
        change_status("nodes", "n1", conditions=[
            {"type": "MemoryPressure", "status": "False"}, {"type": "DiskPressure",
            "status": "False"},
            {"type": "PIDPressure", "status": "False"},
            {"type": "NetworkUnavailable", "status": "False"}]),
        wait(8), shows=_NODES,
    ),
    "node-cordoned-and-back": life(
        change_spec("nodes", "n1", unschedulable=True), wait(6),
        create(pod("x", nodeSelector={"zone": "z1"})), wait(3),
        change_spec("nodes", "n1", unschedulable=None), wait(6), shows=_NODES,
    ),
    "node-comes": life(
        create(pod("x", nodeSelector={"zone": "z9"})), wait(3), add_node("n9"), wait(10),
        shows=_NODES,
    ),
    "node-labels-of-old": life(
        change_meta("nodes", "n1", labels={
            "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64"}),
        wait(6), shows=_NODES,
    ),
}  # fmt: skip

_TAINTS = {
    "taint-evicts": life(
        create(deployment(replicas=2, pod=_on_n1())), wait(3), taint("n1", _NO_EXECUTE), wait(6)
    ),
    "taint-evicts-bare-pods": life(
        create(pod("x", nodeName="n1"), pod("y", nodeName="n1", **_tolerating(None))), wait(3),
        taint("n1", _NO_EXECUTE), wait(5),
    ),
    "taint-for-a-while": life(
        create(pod("x", nodeName="n1", **_tolerating(4))), wait(3), taint("n1", _NO_EXECUTE),
        wait(2), wait(6),
    ),
    "taint-lifted-in-time": life(
        create(pod("x", nodeName="n1", **_tolerating(6))), wait(3), taint("n1", _NO_EXECUTE),
        wait(2), taint("n1"), wait(8),
    ),
    "taint-tolerated-by-the-shortest": life(
        create(pod("x", nodeName="n1", tolerations=[
            *_tolerating(30)["tolerations"],
            {"operator": "Exists", "tolerationSeconds": 3, "effect": "NoExecute"}])),
        wait(3), taint("n1", _NO_EXECUTE), wait(7),
    ),
    "taint-not-at-all": life(
        create(pod("x", nodeName="n1", **_tolerating(0))), wait(3), taint("n1", _NO_EXECUTE),
        wait(4),
    ),
    "taint-on-a-tainted-node": life(
        taint("n1", _NO_EXECUTE), wait(2), create(pod("x", nodeName="n1")),
        create(pod("y", nodeName="n1", **_tolerating(3))), wait(6),
    ),
    "taint-changed": life(
        create(pod("x", nodeName="n1", **_tolerating(None, "a"))), wait(3),
        taint("n1", {**_NO_EXECUTE, "key": "a"}), wait(3), taint("n1", {**_NO_EXECUTE, "key": "b"}),
        wait(4),
    ),
    "taint-no-schedule-evicts-nobody": life(
        create(pod("x", nodeName="n1")), wait(3),
        taint("n1", {**_NO_EXECUTE, "effect": "NoSchedule"}), wait(4),
    ),
    "taint-toleration-added": life(
        create(pod("x", nodeName="n1", **_tolerating(4))), wait(3), taint("n1", _NO_EXECUTE),
        wait(1), change("pods", "x", spec={"tolerations": [
            {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 4},
            {"operator": "Exists"}]}),
        wait(8),
    ),
    "taint-evicts-a-job": life(
        create(job(backoffLimit=0, pod={"life": "run", **_on_n1()}, podFailurePolicy={"rules": [{
            "action": "Ignore", "onPodConditions": [
                {"type": "DisruptionTarget", "status": "True"}]}]})),
        wait(3), taint("n1", _NO_EXECUTE), wait(5),
    ),
}  # fmt: skip


def _deleting(name: str, **options: Any) -> Post:
    body = {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "{name}"},
        "deleteOptions": options,
    }  # fmt: skip
    return Post("pods/eviction", name, body)


_UNREADY = change_status("pods", "a=b#0", conditions=[{"type": "Ready", "status": "False"}])


def _guarded(*objects: Obj) -> tuple[Step, ...]:
    """The last of them is the budget: it finds its pods there."""
    return create(*objects[:-1]), wait(2), create(objects[-1])


_BUDGETS = {
    "pdb-max": life(
        *_guarded(deployment(), budget(maxUnavailable=1)), wait(4), evict("a=b#0"), wait(0.2),
        evict("a=b#1"), wait(5),
    ),
    "pdb-half": life(*_guarded(deployment(replicas=5), budget(minAvailable="50%")), wait(5)),
    "pdb-third": life(*_guarded(deployment(replicas=4), budget(maxUnavailable="30%")), wait(5)),
    "pdb-none-may-go": life(
        *_guarded(deployment(replicas=2), budget(maxUnavailable=0)), wait(4), evict("a=b#0"),
        wait(2)
    ),
    "pdb-all-may-go": life(
        *_guarded(deployment(replicas=2), budget(minAvailable=0)), wait(4), evict("a=b#0"), wait(4)
    ),
    "pdb-of-a-statefulset": life(
        *_guarded(stateful_set(replicas=2), budget(maxUnavailable=1)), wait(5), evict("s-0"),
        wait(0.2),
        evict("s-1"), wait(5),
    ),
    "pdb-of-a-replicaset": life(
        *_guarded(replica_set(), budget(maxUnavailable="50%")), wait(4), evict("a=b#0"), wait(4)
    ),
    "pdb-of-a-job": life(
        *_guarded(job(parallelism=2, pod={"life": "run", "labels": {"a": "b"}}),
        budget(maxUnavailable=1)),
        wait(5), evict("a=b#0"), wait(3),
    ),
    "pdb-of-a-daemonset": life(*_guarded(daemon_set(), budget(maxUnavailable=1)), wait(5)),
    "pdb-of-bare-pods-counted": life(
        *_guarded(pod("x"), pod("y"), budget(minAvailable=1)), wait(4), evict("x"), wait(0.2),
        evict("y"), wait(3),
    ),
    "pdb-two-on-one-pod": life(
        *_guarded(deployment(), budget("p", minAvailable=1)), create(budget("q", minAvailable=1)),
        wait(4),
        evict("a=b#0"), wait(3),
    ),
    "pdb-of-nobody": life(create(budget(minAvailable=1, labels={"no": "body"})), wait(3)),
    "pdb-of-everybody": life(
        *_guarded(
            deployment(replicas=1),
            made("policy/v1", "PodDisruptionBudget", "p", {"maxUnavailable": 1, "selector": {}}),
        ),
        wait(4),
    ),
    "pdb-unready-guarded": life(
        *_guarded(deployment(replicas=2), budget(minAvailable=2)), wait(4), _UNREADY, wait(2),
        evict("a=b#0"), wait(3),
    ),
    "pdb-unready-always-allowed": life(
        *_guarded(deployment(replicas=2), budget(
            minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow")),
        wait(4), _UNREADY, wait(2), evict("a=b#0"), wait(4),
    ),
    "pdb-unready-if-healthy-budget": life(
        *_guarded(deployment(replicas=3), budget(
            minAvailable=2, unhealthyPodEvictionPolicy="IfHealthyBudget")),
        wait(4), _UNREADY, wait(2), evict("a=b#0"), wait(4),
    ),
    "pdb-pending-evicted": life(
        *_guarded(deployment(replicas=1, pod={"life": "never"}), budget(minAvailable=1)), wait(3),
        evict("a=b#0"), wait(3),
    ),
    "pdb-changed": life(
        *_guarded(deployment(), budget(minAvailable=3)), wait(4), evict("a=b#0"),
        change_spec("poddisruptionbudgets", "p", minAvailable=1), wait(2), evict("a=b#0"), wait(4),
    ),
    "pdb-deleted": life(
        *_guarded(deployment(), budget(minAvailable=3)), wait(4), evict("a=b#0"),
        remove("poddisruptionbudgets", "p"), wait(1), evict("a=b#0"), wait(4),
    ),
    "pdb-scaled": life(
        *_guarded(deployment(), budget(maxUnavailable="50%")), wait(4),
        change_spec("deployments", "d", replicas=6), wait(4),
    ),
    "pdb-two-deployments": life(
        *_guarded(deployment("d", 2, pod={"labels": {"a": "b", "x": "1"}}),
               deployment("e", 3, pod={"labels": {"a": "b", "x": "2"}}),
               budget(maxUnavailable="40%")),
        wait(5),
    ),
    "pdb-evicted-by-uid": life(
        create(pod("x")), wait(3), _deleting("x", preconditions={"uid": "other"}),
        _deleting("x", gracePeriodSeconds=2), wait(4),
    ),
    "pdb-evicted-dry": life(
        *_guarded(deployment(), budget(maxUnavailable=1)), wait(4),
        _deleting("a=b#0", dryRun=["All"]), _deleting("a=b#1", dryRun=["All"]), wait(3),
    ),
    "pdb-finished-pod": life(
        *_guarded(pod("x", life="ok:1", restartPolicy="Never"), budget(minAvailable=1)), wait(4),
        evict("x"), wait(3),
    ),
    "pdb-disrupted-stays": life(
        *_guarded(deployment(replicas=2, pod={"stop": "4:0"}), budget(minAvailable=1)), wait(4),
        evict("a=b#0"), wait(2),
    ),
    "pdb-mixed-owners": life(
        *_guarded(deployment(replicas=2), pod("bare"), budget(maxUnavailable=1)), wait(5)
    ),
}  # fmt: skip

LIVES: dict[str, Life] = {**_LOSS, **_TAINTS, **_BUDGETS}
