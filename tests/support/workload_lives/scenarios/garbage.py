"""Garbage collection, namespaces on their way out, quotas and limits."""

from typing import Any

from sampan.api.objects import Obj
from tests.support.workload_lives.manifests import (
    deployment,
    job,
    made,
    pod,
    replica_set,
    service,
    stateful_set,
)
from tests.support.workload_lives.steps import (
    Life,
    Step,
    change,
    change_meta,
    change_spec,
    create,
    life,
    remove,
    wait,
)


def _map(name: str, **meta: Any) -> Obj:
    return made("v1", "ConfigMap", name, None, meta=meta)


def _owner(name: str, uid: str, kind: str = "ConfigMap", **flags: Any) -> Obj:
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, **flags}


_SET: dict[str, Any] = {"stop": "2:0"}
_GUARD = ["x.example.com/guard"]


def _owned(*flags: Any, **words: Any) -> Step:
    """A ConfigMap that belongs to the ReplicaSet."""
    references = [_owner("r", "{uid replicasets r}", "ReplicaSet", **flag) for flag in flags]
    for reference in references:
        reference["apiVersion"] = "apps/v1"
    return create(_map("owned", ownerReferences=references, **words))


_GARBAGE = {
    "gc-background": life(
        create(replica_set(pod=_SET)), wait(3), _owned({}), wait(1),
        remove("replicasets", "r", propagationPolicy="Background"), wait(6),
    ),
    "gc-foreground": life(
        create(replica_set(pod=_SET)), wait(3), _owned({}), wait(1),
        remove("replicasets", "r", propagationPolicy="Foreground"), wait(1), wait(6),
    ),
    "gc-foreground-under-way": life(
        create(replica_set(pod={"stop": "5:0"})), wait(3), _owned({"blockOwnerDeletion": True}),
        wait(1), remove("replicasets", "r", propagationPolicy="Foreground"), wait(2),
    ),
    "gc-foreground-guarded-dependent": life(
        create(replica_set(replicas=0)), wait(2),
        _owned({"blockOwnerDeletion": True}, finalizers=_GUARD), wait(1),
        remove("replicasets", "r", propagationPolicy="Foreground"), wait(4),
        change_meta("configmaps", "owned", finalizers=None), wait(4),
    ),
    "gc-foreground-not-blocking": life(
        create(replica_set(replicas=0)), wait(2),
        _owned({"blockOwnerDeletion": False}, finalizers=_GUARD), wait(1),
        remove("replicasets", "r", propagationPolicy="Foreground"), wait(5),
        change_meta("configmaps", "owned", finalizers=None), wait(3),
    ),
    "gc-orphan": life(
        create(replica_set()), wait(3), _owned({}), wait(1),
        remove("replicasets", "r", propagationPolicy="Orphan"), wait(5),
    ),
    "gc-orphan-dependents-old": life(
        create(replica_set()), wait(3), _owned({}), wait(1),
        remove("replicasets", "r", orphanDependents=True), wait(5),
    ),
    "gc-owner-absent": life(
        create(_map("owned", ownerReferences=[
            _owner("gone", "11111111-2222-3333-4444-555555555555")])),
        wait(5),
    ),
    "gc-owner-of-another-kind": life(
        create(_map("owned", ownerReferences=[
            _owner("gone", "11111111-2222-3333-4444-555555555555", "Nothing")])),
        wait(5),
    ),
    "gc-owner-recreated": life(
        create(_map("own")), wait(1),
        create(_map("owned", ownerReferences=[_owner("own", "{uid configmaps own}")])), wait(2),
        remove("configmaps", "own", propagationPolicy="Orphan"), create(_map("own")), wait(5),
    ),
    "gc-one-of-two-owners": life(
        create(_map("one"), _map("two")), wait(1),
        create(_map("owned", ownerReferences=[
            _owner("one", "{uid configmaps one}"), _owner("two", "{uid configmaps two}")])),
        wait(2), remove("configmaps", "one", propagationPolicy="Background"), wait(4),
    ),
    "gc-both-owners": life(
        create(_map("one"), _map("two")), wait(1),
        create(_map("owned", ownerReferences=[
            _owner("one", "{uid configmaps one}"), _owner("two", "{uid configmaps two}")])),
        wait(2), remove("configmaps", "one", propagationPolicy="Background"), wait(2),
        remove("configmaps", "two", propagationPolicy="Background"), wait(4),
    ),
    "gc-one-owner-in-the-foreground": life(
        create(_map("one"), _map("two")), wait(1),
        create(_map("owned", ownerReferences=[
            _owner("one", "{uid configmaps one}", blockOwnerDeletion=True),
            _owner("two", "{uid configmaps two}")])),
        wait(2), remove("configmaps", "one", propagationPolicy="Foreground"), wait(5),
    ),
    "gc-chain-in-the-foreground": life(
        create(deployment(replicas=2, pod={"stop": "1:0"})), wait(4),
        remove("deployments", "d", propagationPolicy="Foreground"), wait(6),
    ),
    "gc-owner-elsewhere": life(
        create(made("v1", "Namespace", "{ns}-b")), wait(2),
        create({**_map("own"), "metadata": {"name": "own", "namespace": "{ns}-b"}}), wait(1),
        create(_map("owned", ownerReferences=[_owner("own", "{uid configmaps {ns}-b/own}")])),
        wait(6), also=("-b",),
    ),
    "gc-cluster-owner": life(
        create(made("scheduling.k8s.io/v1", "PriorityClass", "{life}.p", None, value=1)), wait(1),
        create(_map("owned", ownerReferences=[{
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "name": "{life}.p",
            "uid": "{uid priorityclasses {life}.p}"}])),
        wait(2), remove("priorityclasses", "{life}.p"), wait(5),
    ),
    "gc-namespaced-owner-of-cluster": life(
        create(_map("own")), wait(1),
        create(made("scheduling.k8s.io/v1", "PriorityClass", "{life}.p", None, value=1, meta={
            "ownerReferences": [_owner("own", "{uid configmaps own}")]})),
        wait(5), shows=("priorityclasses",),
    ),
    "gc-circle": life(
        create(_map("one")), wait(1),
        create(_map("two", ownerReferences=[
            _owner("one", "{uid configmaps one}", blockOwnerDeletion=True)])),
        wait(1),
        change_meta("configmaps", "one", ownerReferences=[
            _owner("two", "{uid configmaps two}", blockOwnerDeletion=True)]),
        wait(2), remove("configmaps", "one", propagationPolicy="Foreground"), wait(5),
    ),
    "gc-finalizer-by-hand": life(
        create(replica_set(replicas=1, pod=_SET)), wait(3),
        change_meta("replicasets", "r", finalizers=["foregroundDeletion"]), wait(1),
        remove("replicasets", "r"), wait(5),
    ),
    "gc-policy-changed-under-way": life(
        create(replica_set(pod={"stop": "4:0"})), wait(3),
        remove("replicasets", "r", propagationPolicy="Foreground"), wait(1),
        remove("replicasets", "r", propagationPolicy="Background"), wait(7),
    ),
    "gc-orphan-then-foreground": life(
        create(replica_set(replicas=1)), wait(3),
        change_meta("replicasets", "r", finalizers=_GUARD),
        remove("replicasets", "r", propagationPolicy="Orphan"), wait(2),
        change_meta("replicasets", "r", finalizers=None), wait(4),
    ),
    "gc-custom-owner": life(
        create(made("apiextensions.k8s.io/v1", "CustomResourceDefinition",
        "things.gc.example.com", {
            "group": "gc.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                }}}]})),
        wait(12),
        create(made("gc.example.com/v1", "Thing", "t")), wait(1),
        create(_map("owned", ownerReferences=[{
            "apiVersion": "gc.example.com/v1", "kind": "Thing", "name": "t",
            "uid": "{uid things@gc.example.com/v1 t}"}])),
        wait(3), remove("things@gc.example.com/v1", "t"), wait(8),
    ),
}  # fmt: skip

_NAMESPACES = {
    "ns-deleted": life(
        create(made("v1", "Namespace", "{ns}-b")), wait(2),
        create({**deployment(replicas=1), "metadata": {"name": "d", "namespace": "{ns}-b"}}),
        wait(4), remove("namespaces", "{ns}-b"), wait(16), shows=("namespaces",), also=("-b",),
        alone=True,
    ),
    "ns-held-by-a-finalizer": life(
        create(made("v1", "Namespace", "{ns}-b")), wait(2),
        create({**_map("m"), "metadata": {
            "name": "m", "namespace": "{ns}-b", "finalizers": _GUARD}}),
        wait(1), remove("namespaces", "{ns}-b"), wait(12), shows=("namespaces",), also=("-b",),
        alone=True,
    ),
    "ns-let-go": life(
        create(made("v1", "Namespace", "{ns}-b")), wait(2),
        create({**_map("m"), "metadata": {
            "name": "m", "namespace": "{ns}-b", "finalizers": _GUARD}}),
        wait(1), remove("namespaces", "{ns}-b"), wait(12),
        change_meta("configmaps", "{ns}-b/m", finalizers=None), wait(20), shows=("namespaces",),
        alone=True,
    ),
    "ns-slow-pods": life(
        create(made("v1", "Namespace", "{ns}-b")), wait(2),
        create({**pod("x", stop="15:0"), "metadata": {
            "name": "x", "namespace": "{ns}-b", "annotations": {"stop": "15:0"}}}),
        create({**_map("m"), "metadata": {"name": "m", "namespace": "{ns}-b"}}),
        wait(3), remove("namespaces", "{ns}-b"), wait(9), shows=("namespaces",), also=("-b",),
        alone=True,
    ),
    "ns-two-finalizers": life(
        create(made("v1", "Namespace", "{ns}-b")), wait(2),
        create({**_map("m"), "metadata": {
            "name": "m", "namespace": "{ns}-b", "finalizers": [*_GUARD, "y.example.com/g"]}}),
        create({**_map("n"), "metadata": {
            "name": "n", "namespace": "{ns}-b", "finalizers": _GUARD}}),
        wait(1), remove("namespaces", "{ns}-b"), wait(12), shows=("namespaces",), also=("-b",),
        alone=True,
    ),
    "ns-closed": life(
        create(made("v1", "Namespace", "{ns}-b")), wait(2),
        create({**_map("m"), "metadata": {
            "name": "m", "namespace": "{ns}-b", "finalizers": _GUARD}}),
        wait(1), remove("namespaces", "{ns}-b"), wait(1),
        create({**_map("late"), "metadata": {"name": "late", "namespace": "{ns}-b"}}), wait(10),
        shows=("namespaces",), alone=True,
    ),
    "ns-own-finalizer": life(
        create(made("v1", "Namespace", "{ns}-b", None, meta={"finalizers": _GUARD})), wait(2),
        remove("namespaces", "{ns}-b"), wait(16),
        change_meta("namespaces", "{ns}-b", finalizers=None), wait(8), shows=("namespaces",),
        alone=True,
    ),
    "ns-account-comes-back": life(
        remove("serviceaccounts", "default"), remove("configmaps", "kube-root-ca.crt"), wait(4)
    ),
    "ns-root-certificate-spoilt": life(
        change("configmaps", "kube-root-ca.crt", data={"ca.crt": "bad", "more": "x"}), wait(3)
    ),
    "account-missing": life(
        create(deployment(replicas=1, pod={"serviceAccountName": "nobody"})), wait(4),
        create(made("v1", "ServiceAccount", "nobody")), wait(12),
    ),
}  # fmt: skip


def _quota(hard: dict[str, str], **spec: Any) -> Obj:
    return made("v1", "ResourceQuota", "q", {"hard": hard, **spec})


def _limits(**item: Any) -> Obj:
    return made("v1", "LimitRange", "l", {"limits": [{"type": "Container", **item}]})


_QUOTAS = {
    "quota-of-pods": life(
        create(_quota({"pods": "2"})), wait(2), create(deployment(replicas=3)), wait(4),
        change_spec("deployments", "d", replicas=1), wait(4),
    ),
    "quota-of-cpu": life(
        create(_quota({"requests.cpu": "1", "limits.cpu": "2"})), wait(2),
        create(pod("none")),
        create(pod("x", containers=[{"name": "c", "image": "x", "resources": {
            "requests": {"cpu": "600m"}, "limits": {"cpu": "1"}}}])),
        create(pod("y", containers=[{"name": "c", "image": "x", "resources": {
            "requests": {"cpu": "600m"}, "limits": {"cpu": "1"}}}])),
        wait(3),
    ),
    "quota-freed-by-an-end": life(
        create(_quota({"pods": "1"})), wait(2),
        create(pod("x", life="ok:1", restartPolicy="Never")), wait(4), create(pod("y")), wait(3),
    ),
    "quota-freed-while-stopping": life(
        create(_quota({"pods": "1", "requests.cpu": "1"})), wait(2),
        create(pod("x", cpu="1", stop="4:0")), wait(2), remove("pods", "x"), wait(1),
        create(pod("y", cpu="1")), wait(2),
    ),
    "quota-scopes": life(
        create(_quota({"pods": "1"}, scopes=["BestEffort"])), wait(2),
        create(pod("x"), pod("y"), pod("z", cpu="1")), wait(3),
    ),
    "quota-not-terminating": life(
        create(_quota({"pods": "1"}, scopes=["NotTerminating"])), wait(2),
        create(pod("x"), pod("y", activeDeadlineSeconds=60), pod("z")), wait(3),
    ),
    "quota-of-a-priority": life(
        create(_quota({"pods": "1"}, scopeSelector={"matchExpressions": [{
            "scopeName": "PriorityClass", "operator": "In",
            "values": ["system-cluster-critical"]}]})),
        wait(2), create(pod("x", priorityClassName="system-cluster-critical")),
        create(pod("y", priorityClassName="system-cluster-critical"), pod("z")), wait(3),
    ),
    "quota-of-counts": life(
        create(_quota({
            "count/configmaps": "3", "secrets": "1", "services": "1", "services.nodeports": "1",
            "count/deployments.apps": "1", "persistentvolumeclaims": "1",
            "requests.storage": "3Gi"})),
        wait(2), create(_map("a"), _map("b"), _map("c")), create(service("s", type="NodePort")),
        create(service("t")), create(deployment(replicas=1), deployment("e", 1)),
        create(made("v1", "PersistentVolumeClaim", "p", {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}})),
        create(made("v1", "PersistentVolumeClaim", "p", {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "resources": {"requests": {"storage": "2Gi"}}})),
        wait(4),
    ),
    "quota-raised": life(
        create(_quota({"pods": "1"})), wait(2), create(replica_set(replicas=2)), wait(3),
        change_spec("resourcequotas", "q", hard={"pods": "3"}), wait(12),
    ),
    "quota-lowered": life(
        create(_quota({"pods": "3"})), wait(2), create(replica_set(replicas=3)), wait(3),
        change_spec("resourcequotas", "q", hard={"pods": "1"}), wait(3), remove("pods", "a=b#0"),
        wait(4),
    ),
    "quota-of-extended": life(
        create(_quota({"requests.example.com/gpu": "1"})), wait(2),
        *(create(pod(name, nodeSelector={"no": "node"}, containers=[{"name": "c", "image": "x",
                 "resources": {"limits": {"example.com/gpu": "1"}}}])) for name in ("x", "y")),
        wait(3),
    ),
    "quota-two": life(
        create(_quota({"pods": "5"}), made("v1", "ResourceQuota", "r", {"hard": {"pods": "1"}})),
        wait(2), create(pod("x"), pod("y")), wait(3),
    ),
    "quota-status-spoilt": life(
        create(_quota({"pods": "5"})), wait(2), create(pod("x")), wait(2),
        change("resourcequotas/status", "q", status={"used": {"pods": "4"}}), wait(3),
        create(pod("y")), wait(2),
    ),
    "quota-stateful": life(
        create(_quota({"pods": "1"})), wait(2), create(stateful_set(replicas=2)), wait(5)
    ),
    "quota-job": life(
        create(_quota({"count/jobs.batch": "1"})), wait(2), create(job("a"), job("b")), wait(5)
    ),
    "limits-default": life(
        create(_limits(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})),
        wait(1), create(deployment(replicas=1)), wait(4),
    ),
    "limits-bounds": life(
        create(_limits(min={"cpu": "100m"}, max={"cpu": "1"}, maxLimitRequestRatio={"cpu": "2"})),
        wait(1), create(pod("x", cpu="2")),
        create(pod("y", containers=[{"name": "c", "image": "x", "resources": {
            "requests": {"cpu": "200m"}, "limits": {"cpu": "500m"}}}])),
        create(pod("z", containers=[{"name": "c", "image": "x", "resources": {
            "requests": {"cpu": "50m"}, "limits": {"cpu": "100m"}}}])),
        create(pod("w")), wait(3),
    ),
    "limits-of-pods": life(
        create(made("v1", "LimitRange", "l", {"limits": [
            {"type": "Pod", "max": {"cpu": "2"}},
            {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]})),
        wait(1), create(pod("x")), create(made("v1", "PersistentVolumeClaim", "p", {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}})),
        create(replica_set(pod={"cpu": "3"})), wait(4),
    ),
    "limits-and-quota": life(
        create(_quota({"limits.cpu": "3"}), _limits(default={"cpu": "2"})), wait(2),
        create(replica_set()), wait(4),
    ),
}  # fmt: skip

LIVES: dict[str, Life] = {**_GARBAGE, **_NAMESPACES, **_QUOTAS}
