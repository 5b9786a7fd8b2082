"""Which volume suits a claim.

Job: the rules of a match, and the best of all that match: few access modes, then little space.
Invariant: a volume that names another claim never matches.
Invariant: of free volumes that no rule tells apart, one is looked at, however many there are.
"""

from collections.abc import Iterable, Mapping

from sampan.api.objects import Obj, is_deleted, labels_of, name_of, namespace_of, uid_of
from sampan.api.quantity import ZERO, Quantity, value_of
from sampan.api.rules.selectors import from_object
from sampan.api.rules.storage import class_name_of
from sampan.client.indexer import Cache, IndexFunction


def is_bound_to(volume: Obj, claim: Obj) -> bool:
    """The volume names this claim; one without a uid was reserved for it by hand."""
    reference = volume["spec"].get("claimRef")
    if not reference:
        return False
    if (reference.get("namespace"), reference.get("name")) != (namespace_of(claim), name_of(claim)):
        return False
    return reference.get("uid") in (None, "", uid_of(claim))


def by_claim(volume: Obj) -> Iterable[str]:
    """The claim that it names."""
    reference = volume["spec"].get("claimRef")
    return (f"{reference.get('namespace')}/{reference.get('name')}",) if reference else ()


def by_shape(volume: Obj) -> Iterable[str]:
    """Of what is free: all that the rules of a match look at, but for labels."""
    spec = volume["spec"]
    if spec.get("claimRef") or is_deleted(volume) or phase_of(volume) != "Available":
        return ()
    modes, class_name = sorted(spec.get("accessModes") or ()), class_name_of(volume)
    shape = (class_name, spec.get("volumeMode"), modes, str(capacity(spec.get("capacity"))))
    return (repr((*shape, spec.get("volumeAttributesClassName"))),)


INDICES: Mapping[str, IndexFunction] = {"claim": by_claim, "shape": by_shape}


def volumes_for(volumes: Cache, claim: Obj) -> dict[str, Obj]:
    """All that matter to a claim: what it names, what names it, and of what is free one of each
    shape; all of them where it selects by labels."""
    named = volumes.get(claim["spec"].get("volumeName") or "")
    found = [named] if named is not None else []
    found += volumes.by("claim", f"{namespace_of(claim)}/{name_of(claim)}")
    each = None if claim["spec"].get("selector") else 1
    for shape in volumes.index_values("shape"):
        found += volumes.by("shape", shape)[:each]
    return {name_of(volume): volume for volume in found}


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
        and phase_of(item) == "Available"
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


def phase_of(volume: Obj) -> str | None:
    phase: str | None = (volume.get("status") or {}).get("phase")
    return phase


def capacity(amounts: Obj | None) -> Quantity:
    return value_of((amounts or {}).get("storage", 0)) if amounts else ZERO


def _preference(volume: Obj) -> tuple[int, int, str]:
    spec = volume["spec"]
    return len(spec.get("accessModes") or ()), capacity(spec["capacity"]).value(), name_of(volume)
