"""What a deletion does to an object: remove it, mark it, or nothing. Pure.

Job: grace, finalizers and propagation, as upstream's BeforeDelete and its store decide them.
Invariant: grace only shrinks; an object with finalizers is never removed.
"""

from sampan.api.calls import Options
from sampan.api.errors import conflict
from sampan.api.objects import Obj, meta_of, seconds_of, time_text, uid_of
from sampan.api.resources import Resource
from sampan.apiserver.registry.strategy import Strategy
from sampan.core.fast_dataclass import dataclass

NOT_COLLECTED = "Unsupported"  # of kinds that own nothing
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_FINALIZERS = {"Orphan": ORPHAN, "Foreground": FOREGROUND}


@dataclass(frozen=True, slots=True)
class Remove:
    """Take it out of the store now. `last`: how it is written before, where its kind knows grace:
    as upstream, a watcher sees that none is left."""

    last: Obj | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """Write this in its place; it goes when its grace and finalizers are over."""

    obj: Obj


@dataclass(frozen=True, slots=True)
class Pending:
    """It is already on its way; nothing changes."""


Plan = Remove | Mark | Pending


def check_preconditions(resource: Resource, obj: Obj, options: Options) -> None:
    """Raises Conflict."""
    meta = meta_of(obj)
    name, group = str(meta.get("name")), "" if resource.kind == "Event" else resource.group
    wanted_uid, wanted = options.precondition_uid, options.precondition_resource_version
    if wanted_uid and wanted_uid != uid_of(obj):
        why = (
            f"the UID in the precondition ({wanted_uid}) does not match the UID in record "
            f"({uid_of(obj)}). The object might have been deleted and then recreated"
        )
        raise conflict(resource.kind, group, name, why)
    if wanted and wanted != meta.get("resourceVersion"):
        why = (
            f"the ResourceVersion in the precondition ({wanted}) does not match the "
            f"ResourceVersion in record ({meta.get('resourceVersion')}). "
            "The object might have been modified"
        )
        raise conflict(resource.kind, group, name, why)


def plan(strategy: Strategy, obj: Obj, options: Options, now: float) -> Plan:
    if strategy.terminating is not None:
        first = strategy.terminating(obj, now)
        if first is not None:
            return Mark(first)
        return Remove() if strategy.vanishes(obj) else Pending()
    meta = meta_of(obj)
    granted = _grace(strategy, obj, options)
    old_grace = int(meta.get("deletionGracePeriodSeconds") or 0)
    running_out = bool(meta.get("deletionTimestamp")) and old_grace > 0
    if granted is not None and running_out and granted >= old_grace:
        return Pending()
    finalizers = _finalizers(list(meta.get("finalizers") or ()), options.propagation, strategy)
    if not finalizers and not granted:
        return Remove(None if granted is None else _mark(obj, finalizers, 0, now))
    marked = _mark(obj, finalizers, granted or 0, now)
    return Pending() if marked == obj else Mark(marked)


def _grace(strategy: Strategy, obj: Obj, options: Options) -> int | None:
    """Seconds of grace; None where the kind knows none."""
    if strategy.grace is None:
        return None
    asked = options.grace_seconds
    if asked is not None and asked < 0:
        asked = 1  # as upstream: negative means one second
    meta = meta_of(obj)
    if meta.get("deletionTimestamp"):
        if not meta.get("deletionGracePeriodSeconds"):
            return 0
        return int(meta["deletionGracePeriodSeconds"]) if asked is None else asked
    return strategy.grace(obj, asked)


def _finalizers(current: list[str], propagation: str, strategy: Strategy) -> list[str]:
    """As deletionFinalizersForGarbageCollection: the policy asked for replaces the other; where
    none is asked for, the object's own finalizer decides, and then its kind."""
    if strategy.default_propagation == NOT_COLLECTED:
        return [item for item in current if item not in (ORPHAN, FOREGROUND)]
    if not propagation and ORPHAN not in current and FOREGROUND not in current:
        propagation = strategy.default_propagation
    if not propagation:
        return current
    kept = [item for item in current if item not in (ORPHAN, FOREGROUND)]
    wanted = _FINALIZERS.get(propagation)
    return kept if wanted is None else [*kept, wanted]


def _mark(obj: Obj, finalizers: list[str], grace: int, now: float) -> Obj:
    meta = dict(meta_of(obj))
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    if not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = time_text(now + grace)
        meta["deletionGracePeriodSeconds"] = grace
        if meta.get("generation"):
            meta["generation"] += 1
    elif (meta.get("deletionGracePeriodSeconds") or 0) > grace:
        asked_at = seconds_of(meta["deletionTimestamp"]) - meta["deletionGracePeriodSeconds"]
        meta["deletionTimestamp"] = time_text(asked_at + grace)
        meta["deletionGracePeriodSeconds"] = grace
    return {**obj, "metadata": meta}
