"""StatefulSets and DaemonSets of every strategy."""

from typing import Any

from tests.support.workload_lives.manifests import (
    claim_template,
    daemon_set,
    image,
    made,
    pod,
    service,
    stateful_set,
)
from tests.support.workload_lives.steps import (
    Life,
    add_node,
    change_meta,
    change_spec,
    change_status,
    create,
    label,
    life,
    remove,
    remove_node,
    taint,
    wait,
)

_PARALLEL: dict[str, Any] = {"podManagementPolicy": "Parallel"}
_BAD = {"template": {**image("bad")["template"], "metadata": {"annotations": {"life": "notready"}}}}
_GOOD = {"template": {**image("good")["template"], "metadata": {"annotations": {"life": "run"}}}}


def _update(kind: str = "RollingUpdate", **rolling: Any) -> dict[str, Any]:
    return {"updateStrategy": {"type": kind, **({"rollingUpdate": rolling} if rolling else {})}}


def _sts(*after: Any, seconds: float = 6, **spec: Any) -> Life:
    return life(create(stateful_set(**spec)), wait(seconds), *after)


def _ds(*after: Any, seconds: float = 4, **spec: Any) -> Life:
    return life(create(daemon_set(**spec)), wait(seconds), *after)


def _scale(replicas: int) -> Any:
    return change_spec("statefulsets", "s", replicas=replicas)


def _retained(deleted: str, scaled: str) -> dict[str, Any]:
    return {
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled},
        "volumeClaimTemplates": [claim_template()],
        **_PARALLEL,
    }


_ORDER = {
    "sts-scaled-up": _sts(_scale(3), wait(5), replicas=1, seconds=3),
    "sts-scaled-down": _sts(_scale(1), wait(5)),
    "sts-to-none": _sts(_scale(0), wait(5), replicas=2),
    "sts-waits-for-the-first": _sts(pod={"life": "notready"}, seconds=4),
    "sts-waits-while-pending": _sts(pod={"life": "never"}, seconds=4),
    "sts-parallel-waits-for-none": _sts(pod={"life": "notready"}, seconds=4, **_PARALLEL),
    "sts-scaled-down-unready": _sts(
        change_status("pods", "statefulset.kubernetes.io/pod-name=s-0",
                      conditions=[{"type": "Ready", "status": "False"}]),
        wait(1), _scale(1), wait(4),
    ),
    "sts-starts-at-five": _sts(ordinals={"start": 5}, replicas=2),
    "sts-start-changed": _sts(
        change_spec("statefulsets", "s", ordinals={"start": 1}), wait(8), replicas=2
    ),
    "sts-min-ready-seconds": _sts(minReadySeconds=2, replicas=2, seconds=8),
    "sts-pod-deleted": _sts(remove("pods", "s-1"), wait(5)),
    "sts-pod-finished": _sts(
        change_status("pods", "s-0", phase="Succeeded"), wait(5), replicas=2
    ),
    "sts-slow-to-stop": _sts(_scale(1), wait(2), pod={"stop": "4:0"}),
    "sts-name-taken": life(
        create(pod("s-0", labels={"x": "y"})), wait(2), create(stateful_set(replicas=1)), wait(4),
        remove("pods", "s-0"), wait(12),
    ),
    "sts-adopts": life(
        create(pod("s-0")), wait(2), create(stateful_set(replicas=2)), wait(5)
    ),
    "sts-does-not-adopt": life(
        create(pod("other")), wait(2), create(stateful_set(replicas=1)), wait(5)
    ),
    "sts-label-removed": _sts(
        change_meta("pods", "s-0", labels={"statefulset.kubernetes.io/pod-name": None}), wait(4),
        replicas=1, seconds=3,
    ),
    "sts-relabelled": _sts(
        change_meta("pods", "s-0", labels={"a": "c"}), wait(5), replicas=1, seconds=3
    ),
    "sts-with-its-service": life(
        create(service(clusterIP="None")), create(stateful_set(replicas=2)), wait(6)
    ),
}  # fmt: skip

_UPDATES = {
    "sts-on-delete": _sts(
        change_spec("statefulsets", "s", **image("y")), wait(3), remove("pods", "s-1"), wait(5),
        **_update("OnDelete"),
    ),
    "sts-partition": _sts(
        change_spec("statefulsets", "s", **image("y")), wait(6), **_update(partition=2)
    ),
    "sts-partition-lowered": _sts(
        change_spec("statefulsets", "s", **image("y")), wait(5),
        change_spec("statefulsets", "s", **_update(partition=0)), wait(8), **_update(partition=2),
    ),
    "sts-partition-pod-deleted": _sts(
        change_spec("statefulsets", "s", **image("y")), wait(5), remove("pods", "s-0"), wait(4),
        **_update(partition=2),
    ),
    "sts-partition-scaled-up": _sts(
        change_spec("statefulsets", "s", **image("y")), wait(5), _scale(4), wait(5),
        **_update(partition=1),
    ),
    "sts-partition-beyond": _sts(
        change_spec("statefulsets", "s", **image("y")), wait(5), **_update(partition=9)
    ),
    "sts-parallel-rolls": _sts(
        change_spec("statefulsets", "s", **image("y")), wait(10), seconds=4, **_PARALLEL
    ),
    "sts-many-unavailable": _sts(
        change_spec("statefulsets", "s", **image("y")), wait(8),
        **_PARALLEL, **_update(maxUnavailable=2),
    ),
    "sts-stuck": _sts(change_spec("statefulsets", "s", **_BAD), wait(5)),
    "sts-stuck-and-mended": _sts(
        change_spec("statefulsets", "s", **_BAD), wait(4),
        change_spec("statefulsets", "s", **_GOOD), wait(6), remove("pods", "s-2"), wait(10),
    ),
    "sts-rolled-back": _sts(
        change_spec("statefulsets", "s", **image("y")), wait(9),
        change_spec("statefulsets", "s", **image("x")), wait(9), replicas=2,
    ),
    "sts-history": _sts(
        *(step for name in ("y", "z", "w")
          for step in (change_spec("statefulsets", "s", **image(name)), wait(4))),
        replicas=1, seconds=3, revisionHistoryLimit=1,
    ),
    "sts-changed-twice": _sts(
        change_spec("statefulsets", "s", **image("y")), wait(0.5),
        change_spec("statefulsets", "s", **image("z")), wait(12),
    ),
    "sts-labels-changed": _sts(
        change_spec("statefulsets", "s", template={"metadata": {"labels": {"c": "d"}}}), wait(9),
        replicas=2,
    ),
    "sts-deleted-in-the-background": _sts(
        remove("statefulsets", "s"), wait(5), replicas=2
    ),
    "sts-deleted-orphaning": _sts(
        remove("statefulsets", "s", propagationPolicy="Orphan"), wait(4), replicas=2
    ),
    "sts-unmanageable-change": _sts(
        change_spec("statefulsets", "s", serviceName="other"),
        change_spec("statefulsets", "s", minReadySeconds=1), wait(3), replicas=1, seconds=3,
    ),
    "sts-quota": life(
        create(made("v1", "ResourceQuota", "q", {"hard": {"pods": "1"}})), wait(2),
        create(stateful_set(replicas=2)), wait(6),
    ),
}  # fmt: skip

_CLAIMS = {
    "sts-claims-stay": _sts(_scale(1), wait(3), remove("statefulsets", "s"), wait(4),
                            **_retained("Retain", "Retain"), replicas=2),
    "sts-claims-go-when-deleted": _sts(
        _scale(1), wait(3), remove("statefulsets", "s"), wait(6),
        **_retained("Delete", "Retain"), replicas=2,
    ),
    "sts-claims-go-when-scaled": _sts(
        _scale(1), wait(4), **_retained("Retain", "Delete"), replicas=2
    ),
    "sts-claims-policy-changed": _sts(
        change_spec("statefulsets", "s", persistentVolumeClaimRetentionPolicy={
            "whenDeleted": "Delete", "whenScaled": "Delete"}),
        wait(3), **_retained("Retain", "Retain"), replicas=2,
    ),
    "sts-claims-policy-taken-back": _sts(
        change_spec("statefulsets", "s", persistentVolumeClaimRetentionPolicy={
            "whenDeleted": "Retain", "whenScaled": "Retain"}),
        wait(3), **_retained("Delete", "Delete"), replicas=2,
    ),
    "sts-claim-lost": _sts(
        change_meta("persistentvolumeclaims", "v-s-0", finalizers=None),
        remove("persistentvolumeclaims", "v-s-0"), wait(4),
        **_retained("Retain", "Retain"), replicas=2,
    ),
    "sts-claim-of-another": life(
        create(made("v1", "ConfigMap", "owner")),
        create({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "v-s-0", "labels": {"mine": "yes"}},
            "spec": claim_template()["spec"],
        }),
        wait(1), create(stateful_set(replicas=1, **_retained("Delete", "Delete"))), wait(5),
    ),
    "sts-two-claims": _sts(
        replicas=1, volumeClaimTemplates=[claim_template("v"), claim_template("w")], seconds=4
    ),
}  # fmt: skip

_DAEMONS = {
    "ds-one-at-a-time": _ds(
        change_spec("daemonsets", "m", **image("y")), wait(9), **_update(maxUnavailable=1)
    ),
    "ds-all-at-once": _ds(
        change_spec("daemonsets", "m", **image("y")), wait(6), **_update(maxUnavailable="100%")
    ),
    "ds-surges": _ds(
        change_spec("daemonsets", "m", **image("y")), wait(9),
        **_update(maxSurge=1, maxUnavailable=0),
    ),
    "ds-surges-everywhere": _ds(
        change_spec("daemonsets", "m", **image("y")), wait(6),
        **_update(maxSurge="100%", maxUnavailable=0),
    ),
    "ds-stuck": _ds(change_spec("daemonsets", "m", **_BAD), wait(5)),
    "ds-stuck-and-mended": _ds(
        change_spec("daemonsets", "m", **_BAD), wait(4),
        change_spec("daemonsets", "m", **_GOOD), wait(9),
    ),
    "ds-stuck-surging": _ds(
        change_spec("daemonsets", "m", **_BAD), wait(5), **_update(maxSurge=1, maxUnavailable=0)
    ),
    "ds-rolled-back": _ds(
        change_spec("daemonsets", "m", **image("y")), wait(7),
        change_spec("daemonsets", "m", **image("x")), wait(7), **_update(maxUnavailable=3),
    ),
    "ds-history": _ds(
        *(step for name in ("y", "z", "w")
          for step in (change_spec("daemonsets", "m", **image(name)), wait(4))),
        revisionHistoryLimit=1, **_update(maxUnavailable=3),
    ),
    "ds-min-ready": _ds(
        change_spec("daemonsets", "m", **image("y")), wait(12), minReadySeconds=2,
        **_update(maxUnavailable=2),
    ),
    "ds-pod-deleted": _ds(remove("pods", "a=b#0"), wait(4)),
    "ds-pod-fails": _ds(
        change_status("pods", "a=b#0", phase="Failed", reason="Evicted"), wait(5)
    ),
    "ds-selector-changed": _ds(
        change_spec("daemonsets", "m", template={"spec": {"nodeSelector": {"zone": "z2"}}}),
        wait(5), pod={"nodeSelector": {"zone": "z1"}},
    ),
    "ds-to-nowhere": _ds(
        change_spec("daemonsets", "m", template={"spec": {"nodeSelector": {"zone": "none"}}}),
        wait(5),
    ),
    "ds-affinity": _ds(pod={"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z0", "z2"]}]},
        ]}}}}),
    "ds-tolerates-for-a-while": _ds(pod={"tolerations": [{
        "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 5}]}),
    "ds-host-network": _ds(pod={"hostNetwork": True}),
    "ds-host-port-taken": life(
        create(pod("x", labels={"c": "d"}, nodeName="n0")), wait(2),
        create(daemon_set(pod={"cpu": "9"})), wait(4),
    ),
    "ds-two-of-one-selector": life(create(daemon_set("m")), create(daemon_set("o")), wait(5)),
    "ds-relabelled": _ds(change_meta("pods", "a=b#0", labels={"a": "c"}), wait(4)),
    "ds-deleted-in-the-foreground": _ds(
        remove("daemonsets", "m", propagationPolicy="Foreground"), wait(4)
    ),
    "ds-deleted-orphaning": _ds(
        remove("daemonsets", "m", propagationPolicy="Orphan"), wait(4)
    ),
    "ds-quota": life(
        create(made("v1", "ResourceQuota", "q", {"hard": {"pods": "2"}})), wait(2),
        create(daemon_set()), wait(5),
    ),
    "ds-node-comes": _ds(add_node("n9"), wait(8)),
    "ds-node-comes-and-goes": _ds(add_node("n9"), wait(8), remove_node("n9"), wait(5)),
    "ds-node-labelled": _ds(
        label("n1", role="x"), wait(4), label("n1", role=None), wait(4),
        pod={"nodeSelector": {"role": "x"}},
    ),
    "ds-no-execute": _ds(
        taint("n1", {"key": "k", "value": "v", "effect": "NoExecute"}), wait(5), taint("n1"),
        wait(4),
    ),
    "ds-cordoned": _ds(
        change_spec("nodes", "n1", unschedulable=True), wait(3),
        change_spec("daemonsets", "m", **image("y")), wait(9),
    ),
}  # fmt: skip

LIVES: dict[str, Life] = {**_ORDER, **_UPDATES, **_CLAIMS, **_DAEMONS}
