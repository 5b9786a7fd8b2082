"""An assigned pod: one that has a node, as far as others care.

Job: Pod → AssignedPod, also for a pod that is about to be placed. Pure.
Invariant: what is compared is what rules look at; the rest may change without an event.
"""

import math
from dataclasses import field

from sampan.api.objects import (
    Obj,
    is_deleted,
    labels_of,
    name_of,
    namespace_of,
    seconds_of,
    uid_of,
)
from sampan.api.rules.conditions import condition_of
from sampan.api.rules.pod_resources import resize_held
from sampan.api.rules.pods import priority
from sampan.core.fast_dataclass import dataclass, replace
from sampan.scheduler.model.disks import Disk, disks_of
from sampan.scheduler.model.pod_info import PodInfo
from sampan.scheduler.model.pod_terms import Carried, carried_by, demands_of
from sampan.scheduler.model.requests import Usage, usage_of
from sampan.scheduler.model.volumes import claims_of

BY_SCHEDULER = "PreemptionByScheduler"


@dataclass(frozen=True, slots=True)
class AssignedPod:
    usage: Usage
    priority: int = 0
    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    terminating: bool = False
    carried: tuple[Carried, ...] = ()
    claims: tuple[str, ...] = ()  # keys of PersistentVolumeClaims
    disks: tuple[Disk, ...] = ()
    uid: str = field(default="", compare=False)
    name: str = field(default="", compare=False)
    # As upstream, one that has not started counts as just started: it loses least.
    started: float = field(default=math.inf, compare=False)
    preempted: bool = field(default=False, compare=False)  # terminating to make room


def assigned_pod_of(pod: Obj) -> AssignedPod:
    return AssignedPod(
        usage=usage_of(pod),
        priority=priority(pod),
        namespace=namespace_of(pod),
        labels=tuple(sorted(labels_of(pod).items())),
        terminating=is_deleted(pod),
        carried=carried_by(demands_of(pod)),
        claims=claims_of(pod),
        disks=disks_of(pod),
        uid=uid_of(pod),
        name=name_of(pod),
        started=_start(pod),
        preempted=is_deleted(pod) and _makes_room(pod),
    )


def assigned_pod_after(before: AssignedPod, old: Obj, new: Obj) -> AssignedPod:
    """What `assigned_pod_of` makes of the new one. Most changes are of the status alone, and tell
    nothing about what the pod takes: then it is not worked out again."""
    if (
        not _asks_the_same(old.get("spec") or {}, new.get("spec") or {})
        or labels_of(old) != labels_of(new)
        or resize_held(old) != resize_held(new)
    ):
        return assigned_pod_of(new)
    terminating, started = is_deleted(new), _start(new)
    preempted = terminating and _makes_room(new)
    if (terminating, started, preempted) == (before.terminating, before.started, before.preempted):
        return before
    return replace(before, terminating=terminating, started=started, preempted=preempted)


def _asks_the_same(old: Obj, new: Obj) -> bool:
    """But for the node that it got, which is no part of what it takes there."""
    if old == new:
        return True
    return {**old, "nodeName": ""} == {**new, "nodeName": ""}


def once_assigned(row: PodInfo) -> AssignedPod:
    """What a pod will be once it is placed."""
    shape = row.shape
    return AssignedPod(
        shape.usage,
        row.priority,
        shape.namespace,
        shape.labels,
        False,
        carried_by(shape.demands),
        shape.claims,
        shape.disks,
        uid=row.uid,
        name=row.key.rpartition("/")[2],
    )


def _start(pod: Obj) -> float:
    written = (pod.get("status") or {}).get("startTime")
    return seconds_of(written) if written else math.inf


def _makes_room(pod: Obj) -> bool:
    target = condition_of(pod, "DisruptionTarget") or {}
    return (target.get("status"), target.get("reason")) == ("True", BY_SCHEDULER)
