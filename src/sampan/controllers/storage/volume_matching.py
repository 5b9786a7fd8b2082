"""Which volume suits a claim.

Job: the rules of a match, and the best of all that match: few access modes, then little space.
Invariant: a volume that names another claim never matches.
Invariant: of free volumes that no rule tells apart, one is looked at, however many there are; of
    claims that need alike, a few are woken.
Invariant: as long as a free volume suits a claim that waits, a claim of that need has its turn.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

import orjson

from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from sampan.api.quantity import ZERO, Quantity, value_of
from sampan.api.rules.storage import BIND_COMPLETED, class_name_of
from sampan.client.indexer import Cache, IndexFunction
from sampan.client.label_index import parsed


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


def by_need(claim: Obj) -> Iterable[str]:
    """Of one that waits for any volume that suits it: all that the rules of a match look at."""
    spec = claim["spec"]
    if BIND_COMPLETED in annotations_of(claim) or spec.get("volumeName"):
        return ()
    modes, size = sorted(spec.get("accessModes") or ()), (spec.get("resources") or {})
    need = (
        class_name_of(claim),
        spec.get("volumeMode"),
        modes,
        str(capacity(size.get("requests"))),
    )
    selector = spec.get("selector")
    chosen = blake2b(orjson.dumps(selector), digest_size=16).hexdigest() if selector else ""
    return (repr((*need, spec.get("volumeAttributesClassName"), chosen)),)


INDICES: Mapping[str, IndexFunction] = {"claim": by_claim, "shape": by_shape}
NEEDS: Mapping[str, IndexFunction] = {"need": by_need}
# Of claims that need alike so many are woken for a volume: more than one, for one of them may not
# be able to take it. When one has got what it needs, or is gone, the next ones have their turn.
WOKEN = 4


def claims_for(claims: Cache, volume: Obj) -> list[Obj]:
    """Those who may take a volume that is free, some of each need."""
    found: list[Obj] = []
    for need in claims.index_values("need"):
        some = claims.some("need", need, WOKEN)
        if _suits(volume, some[0]):
            found += some
    return found


def next_claims(claims: Cache, volumes: Cache, old: Obj, new: Obj | None) -> list[Obj]:
    """Those who may take what is still free, when one that needed the same waits no longer."""
    for need in by_need(old):
        some = [] if new is not None and need in by_need(new) else claims.some("need", need, WOKEN)
        if not some:
            continue
        for shape in volumes.index_values("shape"):
            of_labels = None if old["spec"].get("selector") else 1
            if any(_suits(volume, old) for volume in volumes.some("shape", shape, of_labels)):
                return some
    return []


def _suits(volume: Obj, claim: Obj) -> bool:
    selector = claim["spec"].get("selector")
    if mismatch(volume, claim) is not None:
        return False
    return not selector or parsed(selector).matches(labels_of(volume))


def volumes_for(volumes: Cache, claim: Obj) -> dict[str, Obj]:
    """All that matter to a claim: what it names, what names it, and of what is free one of each
    shape; all of them where it selects by labels."""
    named = volumes.get(claim["spec"].get("volumeName") or "")
    found = [named] if named is not None else []
    found += volumes.by("claim", f"{namespace_of(claim)}/{name_of(claim)}")
    each = None if claim["spec"].get("selector") else 1
    for shape in volumes.index_values("shape"):
        found += volumes.some("shape", shape, each)
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
    matches = parsed(selector).matches if selector else None
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
    if capacity(have.get("capacity")) < _requested(claim):
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


def _requested(claim: Obj) -> Quantity:
    return capacity((claim["spec"].get("resources") or {}).get("requests"))


def _preference(volume: Obj) -> tuple[int, int, str]:
    spec = volume["spec"]
    return len(spec.get("accessModes") or ()), capacity(spec["capacity"]).value(), name_of(volume)
