"""When a node is under pressure, and which pod has to go. Pure.

Job: thresholds and what was measured → conditions and what is due; pods and their usage → an order;
    a pod and its own limits of local storage → why it has to go.
Invariant: a condition that was true stays so for `transition_seconds` after its cause is gone.
Invariant: a soft threshold is acted on only when it was crossed for its whole grace.
Invariant: a pod within its request never goes before one beyond it; critical pods never go.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from sampan.api import pods as pod_rules
from sampan.api.objects import Obj
from sampan.api.quantity import Format, from_value, value_of
from sampan.core.records import dataclass
from sampan.kubelet.spec import containers, init_containers, is_sidecar, spec_of

MEMORY, NODEFS, INODES = "memory.available", "nodefs.available", "nodefs.inodesFree"
IMAGEFS, PIDS = "imagefs.available", "pid.available"
CONDITIONS = {
    MEMORY: "MemoryPressure",
    NODEFS: "DiskPressure",
    INODES: "DiskPressure",
    IMAGEFS: "DiskPressure",
    PIDS: "PIDPressure",
}
RESOURCES = {
    MEMORY: "memory",
    NODEFS: "ephemeral-storage",
    INODES: "inodes",
    IMAGEFS: "ephemeral-storage",
    PIDS: "pids",
}
CRITICAL_PRIORITY = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Threshold:
    """Crossed when less than `amount` (or `percent` of the capacity) is available."""

    signal: str
    amount: int = 0
    percent: float = 0.0
    grace_seconds: float = 0.0  # 0: hard


@dataclass(frozen=True, slots=True)
class EvictionSettings:
    thresholds: tuple[Threshold, ...] = (
        Threshold(MEMORY, 100 << 20),
        Threshold(NODEFS, percent=10),
        Threshold(INODES, percent=5),
        Threshold(IMAGEFS, percent=15),
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

    def conditions(self, now: float, transition_seconds: float) -> frozenset[str]:
        return frozenset(name for name, at in self.last.items() if now - at <= transition_seconds)


def limit_of(threshold: Threshold, available: Available) -> int:
    return threshold.amount or int(available.capacity * threshold.percent / 100)


def looked(
    before: Pressure,
    settings: EvictionSettings,
    measured: Mapping[str, Available],
    now: float,
) -> tuple[Pressure, Threshold | None]:
    """After another look; and the threshold that has to be acted on, memory first."""
    crossed = [
        one
        for one in settings.thresholds
        if (there := measured.get(one.signal)) is not None and there.amount < limit_of(one, there)
    ]
    since = {one: before.since.get(one, now) for one in crossed}
    last = {**before.last, **{CONDITIONS[one.signal]: now for one in crossed}}
    last = {name: at for name, at in last.items() if now - at <= settings.transition_seconds}
    due = [one for one in crossed if now - since[one] >= one.grace_seconds]
    due.sort(key=lambda one: (one.signal != MEMORY, one.grace_seconds))
    return Pressure(since, last), due[0] if due else None


@dataclass(frozen=True, slots=True)
class Candidate:
    pod: Obj
    usage: Mapping[str, int]  # by resource: memory, ephemeral-storage, pids
    by_container: Mapping[str, int] = field(default_factory=dict)  # memory


def ranked(candidates: Iterable[Candidate], resource: str) -> list[Candidate]:
    """Who goes first: beyond its request, then lower priority, then the most beyond."""

    def beyond(one: Candidate) -> int:
        return one.usage.get(resource, 0) - request_of(one.pod, resource)

    chosen = [one for one in candidates if not is_critical(one.pod)]
    return sorted(
        chosen,
        key=lambda one: (beyond(one) <= 0, pod_rules.priority(one.pod), -beyond(one)),
    )


def request_of(pod: Obj, resource: str) -> int:
    asked = pod_rules.requests(pod).get(resource)
    return asked.value() if asked is not None else 0


def is_critical(pod: Obj) -> bool:
    return pod_rules.is_mirror(pod) or pod_rules.priority(pod) >= CRITICAL_PRIORITY


def message(threshold: Threshold, available: Available, chosen: Candidate) -> str:
    """In upstream's words."""
    resource = RESOURCES[threshold.signal]
    text = (
        f"The node was low on resource: {resource}. "
        f"Threshold quantity: {_shown(limit_of(threshold, available))}, "
        f"available: {_shown(available.amount)}. "
    )
    if resource != "memory":
        return text
    for container in containers(chosen.pod):
        used = chosen.by_container.get(container["name"], 0)
        asked = ((container.get("resources") or {}).get("requests") or {}).get("memory", "0")
        if used > value_of(asked).value():
            text += (
                f"Container {container['name']} was using {used // 1024}Ki, "
                f"request is {asked}, has larger consumption of memory. "
            )
    return text


def storage_excess(
    pod: Obj,
    volumes: Mapping[str, int],
    by_container: Mapping[str, int],
) -> str:
    """Why the pod has to go for its own limits of local storage; empty: it keeps them.
    `volumes`: bytes in its emptyDirs; `by_container`: logs and writable layers."""
    for volume in spec_of(pod).get("volumes") or ():
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        if limit and volumes.get(volume["name"], 0) > value_of(limit).value() > 0:
            return f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{limit}". '
    limits = pod_rules.limits(pod)
    total = limits.get("ephemeral-storage")
    if total is not None and _all_have(pod, "ephemeral-storage"):
        used = sum(by_container.values()) + sum(
            size for name, size in volumes.items() if not _in_memory(pod, name)
        )
        if used > total.value():
            said = "Pod ephemeral local storage usage exceeds the total limit of containers"
            return f"{said} {_shown(total.value())}. "
    for container in [*containers(pod), *filter(is_sidecar, init_containers(pod))]:
        limit = ((container.get("resources") or {}).get("limits") or {}).get("ephemeral-storage")
        name = container["name"]
        if limit and by_container.get(name, 0) > value_of(limit).value():
            return f'Container {name} exceeded its local ephemeral storage limit "{limit}". '
    return ""


def has_storage_limits(pod: Obj) -> bool:
    """Only such pods are measured."""
    volumes = spec_of(pod).get("volumes") or ()
    sized = any((one.get("emptyDir") or {}).get("sizeLimit") for one in volumes)
    return sized or "ephemeral-storage" in pod_rules.limits(pod)


def _all_have(pod: Obj, name: str) -> bool:
    return all(
        name in ((one.get("resources") or {}).get("limits") or {}) for one in containers(pod)
    )


def _in_memory(pod: Obj, name: str) -> bool:
    volumes = spec_of(pod).get("volumes") or ()
    found: Obj = next((one for one in volumes if one["name"] == name), {})
    return (found.get("emptyDir") or {}).get("medium") == "Memory"


def _shown(amount: int) -> str:
    return str(from_value(amount, Format.BINARY_SI))


def chosen_pod(candidates: Sequence[Candidate], threshold: Threshold) -> Candidate | None:
    order = ranked(candidates, RESOURCES[threshold.signal])
    return order[0] if order else None
