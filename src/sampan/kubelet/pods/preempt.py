"""Critical pod admission: which pods of the node are preempted.

Job: (pod, pods that run, node) → victims, or None where no set of them is enough. Pure.
Invariant: a victim is less important than the pod: never critical, never of its priority or above.
Invariant: nothing goes that does not have to: every victim is needed for the others' sum.
"""

from collections.abc import Iterable, Mapping, Sequence

from sampan.api.objects import Obj
from sampan.api.quantity import ZERO, Quantity, value_of
from sampan.api.rules import pod_resources
from sampan.api.rules.pods import is_critical, is_static, priority
from sampan.api.rules.qos import qos_class
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.pods import fit

PREEMPTED = Verdict(
    "Preempting",
    "Preempted in order to admit critical pod",
    disruption="Pod was preempted by Kubelet to accommodate a critical pod.",
)
_LAST_TO_GO = ("Guaranteed", "Burstable", "BestEffort")
_ONE = value_of("1")


def victims(pod: Obj, others: Sequence[Obj], room: fit.NodeRoom) -> list[Obj] | None:
    """Pods that were guaranteed less go first."""
    missing = _missing(pod, others, room)
    candidates = [item for item in others if _may_go(item, pod)]
    if _still_missing(missing, candidates):
        return None
    by_quality = {
        quality: [candidate for candidate in candidates if qos_class(candidate) == quality]
        for quality in _LAST_TO_GO
    }
    chosen: list[Obj] = []
    for index, quality in enumerate(_LAST_TO_GO):
        cheaper = [item for other in _LAST_TO_GO[index + 1 :] for item in by_quality[other]]
        chosen += _closest(_still_missing(missing, [*chosen, *cheaper]), by_quality[quality])
    return chosen


def _may_go(other: Obj, pod: Obj) -> bool:
    if is_critical(other):
        return False
    return is_static(pod) or priority(pod) > priority(other)


def _missing(pod: Obj, others: Iterable[Obj], room: fit.NodeRoom) -> dict[str, Quantity]:
    wanted = {"pods": _ONE, **pod_resources.requests(pod)}
    for other in others:
        for name, amount in _freed_resources(other).items():
            if name in wanted:
                wanted[name] = wanted[name] + amount
    lacking = {
        name: amount - value_of(room.allocatable.get(name, "110" if name == "pods" else "0"))
        for name, amount in wanted.items()
    }
    return {name: amount for name, amount in lacking.items() if amount > ZERO}


def _freed_resources(pod: Obj) -> dict[str, Quantity]:
    return {"pods": _ONE, **pod_resources.requests(pod)}


def _still_missing(missing: Mapping[str, Quantity], gone: Iterable[Obj]) -> dict[str, Quantity]:
    left = dict(missing)
    for pod in gone:
        freed = _freed_resources(pod)
        left = {name: amount - freed.get(name, ZERO) for name, amount in left.items()}
    return {name: amount for name, amount in left.items() if amount > ZERO}


def _closest(missing: Mapping[str, Quantity], candidates: Sequence[Obj]) -> list[Obj]:
    """As upstream: one after the other, each time the one that leaves least to find, and of those
    the smallest."""
    chosen: list[Obj] = []
    rest, left = list(candidates), dict(missing)
    while left and rest:
        best = min(rest, key=lambda pod: (_distance(left, pod), _size(pod)))
        rest.remove(best)
        chosen.append(best)
        left = _still_missing(left, [best])
    return chosen


def _distance(missing: Mapping[str, Quantity], pod: Obj) -> float:
    freed, distance = _freed_resources(pod), 0.0
    for name, amount in missing.items():
        remaining = amount - freed.get(name, ZERO)
        if remaining > ZERO:
            distance += (float(remaining.nanos) / float(amount.nanos)) ** 2
    return distance


def _size(pod: Obj) -> tuple[int, int]:
    requests = pod_resources.requests(pod)
    return requests.get("memory", ZERO).nanos, requests.get("cpu", ZERO).nanos
