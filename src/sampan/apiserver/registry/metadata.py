"""Metadata that the server sets: uid, creationTimestamp, generation; and what is immutable.

Job: rest.BeforeCreate and rest.BeforeUpdate, for every kind. Pure, given time and identity.
Invariant: uid, creationTimestamp, deletionTimestamp and generation come from the server only.
"""

import random

from sampan.api.objects import Obj, time_text

_NOT_ON_CREATE = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion",
                  "generation")  # fmt: skip

_NOT_BY_UPDATE = ("generation", "creationTimestamp")
_NOT_GENERATED = frozenset({"apiVersion", "kind", "metadata"})
_NOT_GENERATED_NOR_STATUS = _NOT_GENERATED | {"status"}
_ABSENT = object()
_NOT_ONCE_SET = ("deletionTimestamp", "deletionGracePeriodSeconds")


def prepare_created(obj: Obj, uid: str, now: float, has_generation: bool) -> None:
    meta = obj["metadata"]
    for field in _NOT_ON_CREATE:
        if field in meta:
            del meta[field]
    meta["uid"] = uid
    meta["creationTimestamp"] = time_text(now)
    if has_generation:
        meta["generation"] = 1


def prepare_updated(new: Obj, old: Obj) -> None:
    """Changes to the server's own fields are ignored, but for a deletion that nobody has asked for:
    that is refused when the object is validated, as another uid is."""
    meta, before = new["metadata"], old["metadata"]
    for field in _NOT_BY_UPDATE:
        if field in before:
            meta[field] = before[field]
        elif field in meta:
            del meta[field]
    for field in _NOT_ONCE_SET:
        if field in before:
            meta[field] = before[field]
    if "uid" not in meta:
        meta["uid"] = before["uid"]
    meta["resourceVersion"] = before["resourceVersion"]
    if meta["uid"] == "":
        meta["uid"] = before["uid"]


def bump_generation(new: Obj, old: Obj, counts_status: bool = False, of_metadata: str = "") -> None:
    """One more when anything but metadata and status has changed. `counts_status`: of a custom kind
    whose status is a field like any other; `of_metadata`: what of the metadata counts too."""
    ours = _NOT_GENERATED if counts_status else _NOT_GENERATED_NOR_STATUS
    meta, before = new["metadata"], old["metadata"]
    if any(
        key not in ours and new.get(key, _ABSENT) != old.get(key, _ABSENT) for key in {*new, *old}
    ) or (of_metadata and (meta.get(of_metadata) or {}) != (before.get(of_metadata) or {})):
        meta["generation"] = int(before.get("generation") or 0) + 1


def new_uid(rng: random.Random) -> str:
    bits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(bits[16], 16) & 3]
    return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-{variant}{bits[17:20]}-{bits[20:]}"
