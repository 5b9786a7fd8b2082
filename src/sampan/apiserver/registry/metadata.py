"""What the server itself writes into metadata, and what callers cannot change there.

Job: rest.BeforeCreate and rest.BeforeUpdate, for every kind. Pure, given time and identity.
Invariant: uid, creationTimestamp, deletionTimestamp and generation come from the server only.
"""

import random

from sampan.api.objects import Obj, time_text

_NOT_ON_CREATE = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion",
                  "generation")  # fmt: skip

_NOT_BY_UPDATE = ("generation", "creationTimestamp", "deletionTimestamp",
                  "deletionGracePeriodSeconds")  # fmt: skip


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
    """Changes to the server's own fields are ignored; a uid that is given is checked elsewhere."""
    meta, before = new["metadata"], old["metadata"]
    for field in _NOT_BY_UPDATE:
        if field in before:
            meta[field] = before[field]
        elif field in meta:
            del meta[field]
    if "uid" not in meta:
        meta["uid"] = before["uid"]
    meta["resourceVersion"] = before["resourceVersion"]
    if "selfLink" in meta:
        del meta["selfLink"]
    if meta["uid"] == "":
        meta["uid"] = before["uid"]


def bump_generation(new: Obj, old: Obj) -> None:
    """One more when anything but metadata and status has changed."""
    changed = any(
        new.get(key) != old.get(key)
        for key in {*new, *old}
        if key not in ("metadata", "status", "apiVersion", "kind")
    )
    if changed:
        new["metadata"]["generation"] = int(old["metadata"].get("generation") or 0) + 1


def new_uid(rng: random.Random) -> str:
    bits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(bits[16], 16) & 3]
    return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-{variant}{bits[17:20]}-{bits[20:]}"
