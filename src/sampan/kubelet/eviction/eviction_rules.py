"""Eviction thresholds, pressure conditions and the ranking of pods. Pure.

Job: thresholds and what was measured → conditions and what is due; pods and their usage → an order;
    a node's conditions and a new pod → why it is not taken.
Invariant: a condition that was true stays so for `transition_seconds` after its cause is gone.
Invariant: a soft threshold is acted on only when it was crossed for its whole grace.
Invariant: once acted on, a threshold is over only when its minimum was reclaimed, too.
Invariant: a pod within its request never goes before one beyond it; critical pods never go.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from sampan.api.objects import Obj, spec_of
from sampan.api.quantity import Format, from_value, value_of
from sampan.api.rules import pod_resources
from sampan.api.rules import pods as pod_rules
from sampan.api.rules.pods import containers, init_containers
from sampan.api.rules.qos import qos_class
from sampan.api.rules.tolerations import NO_SCHEDULE, Taint, is_tolerated, tolerations_of
from sampan.core.fast_dataclass import dataclass

MEMORY, NODEFS, INODES = "memory.available", "nodefs.available", "nodefs.inodesFree"
IMAGEFS, IMAGE_INODES, PIDS = "imagefs.available", "imagefs.inodesFree", "pid.available"
CONDITIONS = {
    MEMORY: "MemoryPressure",
    NODEFS: "DiskPressure",
    INODES: "DiskPressure",
    IMAGEFS: "DiskPressure",
    IMAGE_INODES: "DiskPressure",
    PIDS: "PIDPressure",
}
RESOURCES = {
    MEMORY: "memory",
    NODEFS: "ephemeral-storage",
    INODES: "inodes",
    IMAGEFS: "ephemeral-storage",
    IMAGE_INODES: "inodes",
    PIDS: "pids",
}
_MEMORY_TAINT = Taint("node.kubernetes.io/memory-pressure", "", NO_SCHEDULE)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Crossed when less than `amount` (or `percent` of the capacity) is available."""

    signal: str
    amount: int = 0
    percent: float = 0.0
    grace_seconds: float = 0.0  # 0: hard
    reclaim: int = 0  # how much beyond it must be available until it is over
    reclaim_percent: float = 0.0


@dataclass(frozen=True, slots=True)
class EvictionSettings:
    thresholds: tuple[Threshold, ...] = (
        Threshold(MEMORY, 100 << 20),
        Threshold(NODEFS, percent=10),
        Threshold(INODES, percent=5),
        Threshold(IMAGEFS, percent=15),
        Threshold(IMAGE_INODES, percent=5),
    )
    max_pod_grace_seconds: float = 0.0  # for soft thresholds
    transition_seconds: float = 300.0
    period_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Available:
    amount: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Pressure:
    """What is remembered from one look to the next."""

    since: Mapping[Threshold, float] = field(default_factory=dict)  # crossed since
    last: Mapping[str, float] = field(default_factory=dict)  # condition → when it last held
    acted_on: frozenset[Threshold] = frozenset()

    def conditions(self, now: float, transition_seconds: float) -> frozenset[str]:
        return frozenset(name for name, at in self.last.items() if now - at <= transition_seconds)


def limit_of(threshold: Threshold, available: Available) -> int:
    return threshold.amount or int(available.capacity * threshold.percent / 100)


def goal_of(threshold: Threshold, available: Available) -> int:
    """How much must be available until a threshold that was acted on is over."""
    more = threshold.reclaim or int(available.capacity * threshold.reclaim_percent / 100)
    return limit_of(threshold, available) + more


def observe(
    before: Pressure,
    settings: EvictionSettings,
    measured: Mapping[str, Available],
    now: float,
) -> tuple[Pressure, Threshold | None]:
    """After another look; and the threshold that has to be acted on, memory first."""
    crossed = []
    for threshold in settings.thresholds:
        there = measured.get(threshold.signal)
        if there is None:
            continue
        bound = (
            goal_of(threshold, there)
            if threshold in before.acted_on
            else limit_of(threshold, there)
        )
        if there.amount < bound:
            crossed.append(threshold)
    since = {item: before.since.get(item, now) for item in crossed}
    last = {**before.last, **{CONDITIONS[item.signal]: now for item in crossed}}
    last = {name: at for name, at in last.items() if now - at <= settings.transition_seconds}
    due = [item for item in crossed if now - since[item] >= item.grace_seconds]
    due.sort(key=lambda item: (item.signal != MEMORY, item.grace_seconds))
    return Pressure(since, last, frozenset(due)), due[0] if due else None


# Which pod.


@dataclass(frozen=True, slots=True)
class Candidate:
    pod: Obj
    usage: Mapping[str, int]  # by resource: memory, ephemeral-storage, inodes, pids
    # Resource → container → what it uses, of the resources that are requested.
    by_container: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def rank(candidates: Iterable[Candidate], resource: str) -> list[Candidate]:
    """Who goes first: beyond its request, then lower priority, then the most beyond."""

    def beyond(one: Candidate) -> int:
        return one.usage.get(resource, 0) - request_of(one.pod, resource)

    chosen = [candidate for candidate in candidates if not pod_rules.is_critical(candidate.pod)]
    return sorted(
        chosen,
        key=lambda item: (beyond(item) <= 0, pod_rules.priority(item.pod), -beyond(item)),
    )


def request_of(pod: Obj, resource: str) -> int:
    asked = pod_resources.requests(pod).get(resource)
    return asked.value() if asked is not None else 0


def chosen_pod(candidates: Sequence[Candidate], threshold: Threshold) -> Candidate | None:
    order = rank(candidates, RESOURCES[threshold.signal])
    return order[0] if order else None


def grace_of(pod: Obj, threshold: Threshold, settings: EvictionSettings) -> float:
    """Hard thresholds leave no time; soft ones as much as both the node and the pod allow."""
    if not threshold.grace_seconds:
        return 0.0
    own = spec_of(pod).get("terminationGracePeriodSeconds")
    most = settings.max_pod_grace_seconds
    return most if own is None else min(most, float(own))


def message(threshold: Threshold, available: Available, chosen: Candidate) -> str:
    """In upstream's words."""
    resource = RESOURCES[threshold.signal]
    text = (
        f"The node was low on resource: {resource}. "
        f"Threshold quantity: {amount_text(limit_of(threshold, available))}, "
        f"available: {amount_text(available.amount)}. "
    )
    used_by = chosen.by_container.get(resource, {})
    for container in [*containers(chosen.pod), *init_containers(chosen.pod)]:
        used = used_by.get(container["name"], 0)
        asked = ((container.get("resources") or {}).get("requests") or {}).get(resource, "0")
        if used > value_of(asked).value():
            text += (
                f"Container {container['name']} was using {amount_text(used)}, "
                f"request is {asked}, has larger consumption of {resource}. "
            )
    return text


def amount_text(amount: int) -> str:
    return str(from_value(amount, Format.BINARY_SI))


# New pods.


def why_not_taken(pod: Obj, conditions: frozenset[str]) -> str:
    """Under pressure a node takes no pod but critical ones; where only memory is short, it takes
    those that said how much they need, and those that tolerate it. Empty: it is taken."""
    if not conditions or pod_rules.is_critical(pod):
        return ""
    if conditions == {"MemoryPressure"} and (
        qos_class(pod) != "BestEffort" or is_tolerated(tolerations_of(pod), _MEMORY_TAINT)
    ):
        return ""
    return f"The node had condition: [{' '.join(sorted(conditions))}]. "
