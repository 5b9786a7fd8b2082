"""How the pods of an owner stand, counted by what a set of replicas asks of them.

Job: what a ReplicaSet sees of a pod, as a value; sums over such values. Pure: the counts of a whole
    set cost what its pods differ in, not how many there are.
Invariant: two pods that look alike here are the same to everything that a status counts.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from sampan.api.objects import Obj, controller_of, is_deleted, labels_of
from sampan.api.rules.aspects import DELETION, LABELS, OWNERS, PHASE, STATUS, looks_at
from sampan.api.rules.conditions import is_true
from sampan.api.rules.pods import is_terminal
from sampan.api.rules.selectors import LabelSelector
from sampan.controllers.workloads.pod_control import ready_since

REPLICAS = "replicas"  # the tally's name


class Replica(NamedTuple):
    labels: tuple[tuple[str, str], ...]
    is_active: bool
    is_terminating: bool
    ready_since: float | None  # -inf where it is not asked since when

    def available_at(self, min_ready_seconds: int) -> float | None:
        """When it counts as available, maybe in the future; None while it is not ready."""
        if self.ready_since is None:
            return None
        return self.ready_since + min_ready_seconds if min_ready_seconds else -math.inf


Replicas = Mapping[Replica, int]


@looks_at(OWNERS | LABELS | DELETION | PHASE | STATUS)
def by_owner(pod: Obj) -> tuple[str, Replica] | None:
    """For a tally: a controller's uid, and how its pod stands. Since when it is ready is not told:
    pods that came one by one would all look different."""
    owner = controller_of(pod)
    if owner is None:
        return None
    since = -math.inf if is_true(pod, "Ready") else None
    return owner.get("uid", ""), _replica(pod, since)


def replica_of(pod: Obj) -> Replica:
    return _replica(pod, ready_since(pod))


def _replica(pod: Obj, since: float | None) -> Replica:
    labels = tuple(sorted(labels_of(pod).items()))
    over, deleted = is_terminal(pod), is_deleted(pod)
    return Replica(labels, not over and not deleted, not over and deleted, since)


def matching(replicas: Replicas, selector: LabelSelector) -> dict[Replica, int]:
    return {item: count for item, count in replicas.items() if selector.matches(dict(item.labels))}


def active_count(replicas: Replicas) -> int:
    return sum(count for item, count in replicas.items() if item.is_active)


def terminating_count(replicas: Replicas) -> int:
    return sum(count for item, count in replicas.items() if item.is_terminating)


def status_counts(
    replicas: Replicas, template_labels: Mapping[str, str], min_ready_seconds: int, now: float
) -> dict[str, int]:
    """By the fields of a ReplicaSet's status; those that are nought are left out, but the first."""
    labelled = ready = available = 0
    wanted = template_labels.items()
    for item, count in replicas.items():
        if not item.is_active:
            continue
        moment = item.available_at(min_ready_seconds)
        labelled += count if wanted <= dict(item.labels).items() else 0
        ready += count if moment is not None else 0
        available += count if moment is not None and moment <= now else 0
    counts = {
        "fullyLabeledReplicas": labelled,
        "readyReplicas": ready,
        "availableReplicas": available,
    }
    found = {name: count for name, count in counts.items() if count}
    return {"replicas": active_count(replicas), **found}


def next_availability(replicas: Replicas, min_ready_seconds: int, now: float) -> float | None:
    """How long until the next ready pod counts as available, too."""
    if not min_ready_seconds:
        return None
    times = [item.available_at(min_ready_seconds) for item in replicas if item.is_active]
    coming = [moment - now for moment in times if moment is not None and moment > now]
    return min(coming) if coming else None
