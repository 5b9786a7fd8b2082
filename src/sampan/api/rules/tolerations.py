"""Taints and tolerations: what keeps a pod away from a node, and what lets it come all the same.

Job: read them, and say whether a taint is tolerated. Pure.
Invariant: as Toleration.ToleratesTaint: an empty key or effect matches every one; Equal compares
    values, Exists does not; any other operator tolerates nothing.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"
HARD_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator == "Equal" and self.value == taint.value


UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)


def taint_of(written: Obj) -> Taint:
    return Taint(written.get("key") or "", written.get("value") or "", written.get("effect") or "")


def toleration_of(written: Obj) -> Toleration:
    return Toleration(
        written.get("key") or "",
        written.get("operator") or "Equal",
        written.get("value") or "",
        written.get("effect") or "",
    )


def taints_of(node: Obj) -> frozenset[Taint]:
    return frozenset(taint_of(taint) for taint in (node.get("spec") or {}).get("taints") or ())


def tolerations_of(pod: Obj) -> tuple[Toleration, ...]:
    return tuple(
        toleration_of(toleration) for toleration in (pod.get("spec") or {}).get("tolerations") or ()
    )


def is_tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)


def keeps_away(
    tolerations: Sequence[Toleration],
    taints: Iterable[Taint],
    effects: Sequence[str] = HARD_EFFECTS,
) -> bool:
    """Whether one of the taints has such an effect and is not tolerated."""
    return any(taint.effect in effects and not is_tolerated(tolerations, taint) for taint in taints)
