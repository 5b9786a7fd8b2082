"""Taints and tolerations as values. Pure.

Job: read them, and say whether a taint is tolerated.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"


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
        return self.operator in ("", "Equal") and self.value == taint.value


UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)


def taints_of(node: Obj) -> frozenset[Taint]:
    return frozenset(
        Taint(one.get("key") or "", one.get("value") or "", one.get("effect") or "")
        for one in (node.get("spec") or {}).get("taints") or ()
    )


def tolerations_of(pod: Obj) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(
            one.get("key") or "",
            one.get("operator") or "Equal",
            one.get("value") or "",
            one.get("effect") or "",
        )
        for one in (pod.get("spec") or {}).get("tolerations") or ()
    )


def tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)


def keeps_away(tolerations: tuple[Toleration, ...], taints: frozenset[Taint]) -> bool:
    """Whether one of the taints forbids scheduling and is not tolerated."""
    return any(
        taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not tolerated(tolerations, taint)
        for taint in taints
    )
