"""Which volume suits a claim.

Job: the rules of a match, and the best of all that match: few access modes, then little space.
Invariant: a volume that names another claim never matches.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj, is_deleted, labels_of, name_of, namespace_of, uid_of
from sampan.api.quantity import ZERO, Quantity, value_of
from sampan.api.rules.selectors import from_object
from sampan.api.rules.storage import class_name_of


def is_bound_to(volume: Obj, claim: Obj) -> bool:
    """The volume names this claim; one without a uid was reserved for it by hand."""
    reference = volume["spec"].get("claimRef")
    if not reference:
        return False
    if (reference.get("namespace"), reference.get("name")) != (namespace_of(claim), name_of(claim)):
        return False
    return reference.get("uid") in (None, "", uid_of(claim))


def best_match(volumes: Iterable[Obj], claim: Obj, *, only_reserved: bool) -> Obj | None:
    """`only_reserved`: the scheduler chooses among the free ones, not we."""
    fitting = [
        volume for volume in volumes if not is_deleted(volume) and mismatch(volume, claim) is None
    ]
    reserved = [item for item in fitting if is_bound_to(item, claim)]
    if reserved:
        return min(reserved, key=_preference)
    if only_reserved:
        return None
    selector = claim["spec"].get("selector")
    matches = from_object(selector).matches if selector else None
    free = [
        item
        for item in fitting
        if not item["spec"].get("claimRef")
        and (item.get("status") or {}).get("phase") == "Available"
        and (matches is None or matches(labels_of(item)))
    ]
    return min(free, key=_preference, default=None)


def mismatch(volume: Obj, claim: Obj) -> str | None:
    """Why the claim cannot have this volume, as upstream says it; None where it can."""
    have, want = volume["spec"], claim["spec"]
    if capacity(have.get("capacity")) < capacity((want.get("resources") or {}).get("requests")):
        return "requested PV is too small"
    if class_name_of(volume) != class_name_of(claim):
        return "storageClassName does not match"
    if (have.get("volumeMode") or "Filesystem") != (want.get("volumeMode") or "Filesystem"):
        return "incompatible volumeMode"
    if not set(want.get("accessModes") or ()) <= set(have.get("accessModes") or ()):
        return "incompatible accessMode"
    if (have.get("volumeAttributesClassName") or "") != (
        want.get("volumeAttributesClassName") or ""
    ):
        return "VolumeAttributesClassName does not match"
    return None


def capacity(amounts: Obj | None) -> Quantity:
    return value_of((amounts or {}).get("storage", 0)) if amounts else ZERO


def _preference(volume: Obj) -> tuple[int, int, str]:
    spec = volume["spec"]
    return len(spec.get("accessModes") or ()), capacity(spec["capacity"]).value(), name_of(volume)
