"""Conditions: `status.conditions[]`, a list that is a map by type.

Job: find one, and set one so that lastTransitionTime says when its status last changed. Pure.
Invariant: setting what is already there changes nothing.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, time_text

_NO_OBJ: Obj = {}


def condition_of(obj: Obj, kind: str) -> Obj | None:
    """An object's condition of a type, or None."""
    for condition in (obj.get("status") or _NO_OBJ).get("conditions") or ():
        if condition.get("type") == kind:
            found: Obj = condition
            return found
    return None


def find(conditions: Sequence[Obj], kind: str) -> Obj | None:
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def is_true(obj: Obj, kind: str) -> bool:
    found = condition_of(obj, kind)
    return found is not None and found.get("status") == "True"


def with_condition(conditions: Sequence[Obj], wanted: Obj, now: float) -> list[Obj]:
    """The list with `wanted` in its place, or at the end. The transition time is kept while the
    status stays, else it is the one given in `wanted`, else `now`."""
    before = find(conditions, wanted["type"])
    placed = _with_times(before, wanted, now)
    if before is None:
        return [*conditions, placed]
    return [placed if condition is before else condition for condition in conditions]


def without_condition(conditions: Sequence[Obj], kind: str) -> list[Obj]:
    return [condition for condition in conditions if condition.get("type") != kind]


def transition_time(before: Obj | None, status: str, now: float) -> str:
    """When the condition got this status: it stays while the status does."""
    if before is not None and before.get("status") == status:
        return str(before.get("lastTransitionTime") or time_text(now))
    return time_text(now)


def _with_times(before: Obj | None, wanted: Obj, now: float) -> Obj:
    moment = transition_time(before, wanted["status"], now)
    if before is None or before.get("status") != wanted["status"]:
        moment = wanted.get("lastTransitionTime") or moment
    # Fields that the caller does not speak of (lastProbeTime, say) stay as they were.
    return {**(before or {}), **wanted, "lastTransitionTime": moment}
