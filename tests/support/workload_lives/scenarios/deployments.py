"""Deployments of every rollout and rollback, and the ReplicaSets below them."""

from typing import Any

from tests.support.workload_lives.manifests import (
    deployment,
    image,
    made,
    pod,
    replica_set,
    replication_controller,
)
from tests.support.workload_lives.steps import (
    Life,
    change,
    change_meta,
    change_spec,
    change_status,
    create,
    life,
    remove,
    wait,
)


def _rolling(surge: Any, unavailable: Any) -> dict[str, Any]:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}


def _rolled(*words: Any, **spec: Any) -> Life:
    """Made, and given another image four seconds later."""
    return life(
        create(deployment(*words, **spec)), wait(4),
        change_spec("deployments", "d", **image("y")), wait(9),
    )  # fmt: skip


def _stuck(*, after: tuple[Any, ...] = (), **spec: Any) -> Life:
    """On the way to an image whose pods never get ready."""
    worse = {"template": {**image("bad")["template"], "metadata": _NOT_READY}}
    return life(
        create(deployment(**spec)), wait(4), change_spec("deployments", "d", **worse), wait(4),
        *after,
    )  # fmt: skip


_NOT_READY = {"annotations": {"life": "notready"}}
_READY = {"annotations": {"life": "run"}}

_ROLLOUTS = {
    "deploy-one-at-a-time": _rolled(**_rolling(0, 1)),
    "deploy-surges": _rolled(**_rolling(1, 0)),
    "deploy-all-at-once": _rolled(**_rolling("100%", "100%")),
    "deploy-rounded": _rolled("d", 3, **_rolling("10%", "10%")),
    "deploy-min-ready-rolled": _rolled("d", 2, minReadySeconds=2),
    "deploy-recreated-slowly": life(
        create(deployment(replicas=2, strategy={"type": "Recreate"}, pod={"stop": "3:0"})),
        wait(4), change_spec("deployments", "d", **image("y")), wait(2), wait(6),
    ),
    "deploy-none": life(
        create(deployment(replicas=0)), wait(3), change_spec("deployments", "d", **image("y")),
        wait(3),
    ),
    "deploy-to-none": life(
        create(deployment(replicas=2)), wait(4), change_spec("deployments", "d", replicas=0),
        wait(4),
    ),
    "deploy-labels-changed": life(
        create(deployment(replicas=2)), wait(4),
        change_spec("deployments", "d", template={"metadata": {"labels": {"c": "d"}}}), wait(6),
    ),
    "deploy-restarted": life(
        create(deployment(replicas=2)), wait(4),
        change_spec("deployments", "d", template={"metadata": {
            "annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}}),
        wait(6),
    ),
    "deploy-slow-pods": _rolled("d", 3, pod={"life": "late:1"}),
    "deploy-slow-to-stop": _rolled("d", 3, pod={"stop": "3:0"}),
}  # fmt: skip

_STUCK = {
    "deploy-stuck-rolling": _stuck(replicas=3, progressDeadlineSeconds=60),
    "deploy-stuck-surging": _stuck(replicas=3, progressDeadlineSeconds=60, **_rolling(2, 0)),
    "deploy-stuck-too-long": _stuck(
        replicas=2, progressDeadlineSeconds=3, after=(wait(5),)
    ),
    "deploy-stuck-then-back": _stuck(
        replicas=2, progressDeadlineSeconds=3,
        after=(
            wait(4),
            change_spec("deployments", "d", template={
                **image("x")["template"], "metadata": _READY}),
            wait(5),
        ),
    ),
    "deploy-stuck-scaled-up": _stuck(
        replicas=4, progressDeadlineSeconds=60,
        after=(change_spec("deployments", "d", replicas=10), wait(5)),
    ),
    "deploy-stuck-scaled-down": _stuck(
        replicas=10, progressDeadlineSeconds=60,
        after=(change_spec("deployments", "d", replicas=4), wait(5)),
    ),
    "deploy-stuck-paused-scaled": _stuck(
        replicas=4, progressDeadlineSeconds=60,
        after=(
            change_spec("deployments", "d", paused=True), wait(2),
            change_spec("deployments", "d", replicas=8), wait(4),
        ),
    ),
    "deploy-stuck-and-deleted": _stuck(
        replicas=2, progressDeadlineSeconds=60,
        after=(remove("deployments", "d", propagationPolicy="Foreground"), wait(5)),
    ),
    "deploy-quota": life(
        create(made("v1", "ResourceQuota", "q", {"hard": {"pods": "2"}})), wait(2),
        create(deployment(replicas=3)), wait(5),
    ),
    "deploy-quota-stops-a-rollout": life(
        create(made("v1", "ResourceQuota", "q", {"hard": {"pods": "3"}})), wait(2),
        create(deployment(replicas=3, **_rolling(1, 0))), wait(4),
        change_spec("deployments", "d", **image("y")), wait(5),
    ),
}  # fmt: skip

_HISTORY = {
    "deploy-history-of-one": life(
        create(deployment(replicas=1, revisionHistoryLimit=1)), wait(3),
        *(step for name in ("y", "z", "w")
          for step in (change_spec("deployments", "d", **image(name)), wait(4))),
    ),
    "deploy-no-history": life(
        create(deployment(replicas=1, revisionHistoryLimit=0)), wait(3),
        change_spec("deployments", "d", **image("y")), wait(5),
    ),
    "deploy-history-cut": life(
        create(deployment(replicas=1)), wait(3), change_spec("deployments", "d", **image("y")),
        wait(4), change_spec("deployments", "d", **image("z")), wait(4),
        change_spec("deployments", "d", revisionHistoryLimit=0), wait(3),
    ),
    "deploy-back-and-forth": life(
        create(deployment(replicas=1)), wait(3),
        *(step for name in ("y", "x", "y", "x")
          for step in (change_spec("deployments", "d", **image(name)), wait(4))),
    ),
    "deploy-change-cause": life(
        create(deployment(replicas=1)),
        change_meta("deployments", "d", annotations={"kubernetes.io/change-cause": "first"}),
        wait(3), change_spec("deployments", "d", **image("y")),
        change_meta("deployments", "d", annotations={"kubernetes.io/change-cause": "second"}),
        wait(5), change_spec("deployments", "d", **image("x")), wait(5),
    ),
    "deploy-annotations-follow": life(
        create(deployment(replicas=1)), wait(3),
        change_meta("deployments", "d", annotations={"x": "y"}), wait(2),
        change_meta("deployments", "d", annotations={"x": None}), wait(2),
    ),
    "deploy-paused-and-resumed": life(
        create(deployment(replicas=2)), wait(3), change_spec("deployments", "d", paused=True),
        change_spec("deployments", "d", **image("y")), wait(3),
        change_spec("deployments", "d", paused=False), wait(6),
    ),
    "deploy-born-paused": life(
        create(deployment(replicas=2, paused=True)), wait(4),
        change_spec("deployments", "d", paused=False), wait(4),
    ),
    "deploy-paused-deadline": life(
        create(deployment(replicas=1, paused=True, progressDeadlineSeconds=2, pod={
            "life": "notready"})),
        wait(5), change_spec("deployments", "d", paused=False), wait(6),
    ),
}  # fmt: skip

_OWNERS = {
    "deploy-deleted-in-the-foreground": life(
        create(deployment(replicas=2, pod={"stop": "2:0"})), wait(4),
        remove("deployments", "d", propagationPolicy="Foreground"), wait(1), wait(5),
    ),
    "deploy-deleted-in-the-background": life(
        create(deployment(replicas=2, pod={"stop": "3:0"})), wait(4),
        remove("deployments", "d", propagationPolicy="Background"), wait(1), wait(6),
    ),
    "deploy-set-deleted": life(
        create(deployment(replicas=2)), wait(4), remove("replicasets", "a=b#0"), wait(5)
    ),
    "deploy-set-orphaned": life(
        create(deployment(replicas=2)), wait(4),
        remove("replicasets", "a=b#0", propagationPolicy="Orphan"), wait(5),
    ),
    "deploy-set-scaled-by-hand": life(
        create(deployment(replicas=2)), wait(4),
        change_spec("replicasets", "a=b#0", replicas=5), wait(4),
    ),
    "deploy-set-relabelled": life(
        create(deployment(replicas=1)), wait(4),
        change_meta("replicasets", "a=b#0", labels={"a": "c"}), wait(5),
    ),
    "deploy-pod-relabelled": life(
        create(deployment(replicas=2)), wait(4),
        change_meta("pods", "a=b#0", labels={"a": "c"}), wait(4),
    ),
    "deploy-adopts-a-set": life(
        create(replica_set("r", 2)), wait(3), create(deployment(replicas=2)), wait(5)
    ),
    "deploy-two-of-one-selector": life(
        create(deployment("d", 1)), create(deployment("e", 1)), wait(5)
    ),
    "deploy-pod-fails": life(
        create(deployment(replicas=2)), wait(4),
        change_status("pods", "a=b#0", phase="Failed", reason="Evicted"), wait(4),
    ),
    "deploy-pod-unready": life(
        create(deployment(replicas=2)), wait(4),
        change_status("pods", "a=b#0", conditions=[{"type": "Ready", "status": "False"}]), wait(4),
    ),
    "deploy-scaled-by-scale": life(
        create(deployment(replicas=2)), wait(4),
        change("deployments/scale", "d", spec={"replicas": 4}), wait(4),
    ),
}  # fmt: skip

_SETS = {
    "rs-adopts": life(create(pod("x")), create(pod("y")), wait(3), create(replica_set()), wait(4)),
    "rs-releases": life(
        create(replica_set()), wait(3), change_meta("pods", "a=b#0", labels={"a": None}), wait(4)
    ),
    "rs-orphaned": life(
        create(replica_set()), wait(3), remove("replicasets", "r", propagationPolicy="Orphan"),
        wait(4),
    ),
    "rs-not-a-controller-of": life(
        create(made("v1", "ConfigMap", "owner")),
        create(pod("x")), wait(3), create(replica_set(replicas=1)), wait(3),
        change_meta("pods", "x", ownerReferences=None), wait(4),
    ),
    "rs-deletion-cost": life(
        create(replica_set(replicas=3)), wait(4),
        change_meta("pods", "a=b#0", annotations={
            "controller.kubernetes.io/pod-deletion-cost": "10"}, labels={"keep": "me"}),
        change_meta("pods", "a=b#1", annotations={
            "controller.kubernetes.io/pod-deletion-cost": "10"}, labels={"keep": "me"}),
        wait(1), change_spec("replicasets", "r", replicas=2), wait(4),
    ),
    "rs-unready-first": life(
        create(replica_set(replicas=3)), wait(4),
        change_meta("pods", "a=b#1", labels={"keep": "no"}),
        change_status("pods", "a=b#1", conditions=[{"type": "Ready", "status": "False"}]),
        wait(1), change_spec("replicasets", "r", replicas=2), wait(4),
    ),
    "rs-min-ready": life(create(replica_set(minReadySeconds=3)), wait(2.2), wait(5)),
    "rs-terminating": life(
        create(replica_set(pod={"stop": "4:0"})), wait(3),
        change_spec("replicasets", "r", replicas=0), wait(2),
    ),
    "rs-quota-and-scaled-down": life(
        create(made("v1", "ResourceQuota", "q", {"hard": {"pods": "1"}})), wait(2),
        create(replica_set(replicas=2)), wait(4), change_spec("replicasets", "r", replicas=1),
        wait(4),
    ),
    "rc-orphaned-and-adopted": life(
        create(replication_controller()), wait(3),
        remove("replicationcontrollers", "r", propagationPolicy="Orphan"), wait(3),
        create(replication_controller()), wait(4),
    ),
    "rc-deleted": life(
        create(replication_controller()), wait(3), remove("replicationcontrollers", "r"), wait(4)
    ),
    "rc-quota": life(
        create(made("v1", "ResourceQuota", "q", {"hard": {"pods": "1"}})), wait(2),
        create(replication_controller()), wait(5),
    ),
    "pod-evicted-by-nobody": life(
        create(pod("x", stop="1:0")), wait(3), remove("pods", "x", gracePeriodSeconds=5), wait(4)
    ),
}  # fmt: skip

LIVES: dict[str, Life] = {**_ROLLOUTS, **_STUCK, **_HISTORY, **_OWNERS, **_SETS}
