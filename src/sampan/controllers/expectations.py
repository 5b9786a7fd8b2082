"""Expectations: writes of a controller that its caches do not show yet.

Job: after a write, name what the caches must show; say whether they do. Pure.
Invariant: an expectation is met for good once the cache has caught up, and given up after
    TIMEOUT_SECONDS, so that a lost answer never stops a controller.
Why not counters, as upstream: all revisions come from one counter, so "the cache of pods is at
    revision 812" says exactly what "three creations seen" only guesses.
"""

from collections.abc import Callable

from sampan.api.objects import Obj, is_deleted, revision_of, uid_of
from sampan.api.resources import Resource
from sampan.controllers.actions import Action, Create, Delete, Outcome, Patch, Update
from sampan.core.fast_dataclass import dataclass

TIMEOUT_SECONDS = 300.0  # as upstream's ExpectationsTimeout


@dataclass(frozen=True, slots=True)
class Written:
    """The cache of `resource` must reach `revision`."""

    resource: Resource
    revision: int
    until: float


@dataclass(frozen=True, slots=True)
class Deleted:
    """The object must be gone from the cache, or at least be on its way out."""

    resource: Resource
    key: str
    uid: str
    until: float


Expectation = Written | Deleted
Revision = Callable[[Resource], int]
Lookup = Callable[[Resource, str], Obj | None]


def expectation(outcome: Outcome, now: float) -> Expectation | None:
    """What the caches must show after this outcome; None where nothing was written."""
    if outcome.error is not None:
        return None
    action: Action = outcome.action
    match action:
        case Create(resource) | Update(resource) | Patch(resource):
            if outcome.result is None:
                return None
            return Written(resource, revision_of(outcome.result), now + TIMEOUT_SECONDS)
        case Delete(resource, namespace, name, uid):
            key = f"{namespace}/{name}" if namespace else name
            return Deleted(resource, key, uid, now + TIMEOUT_SECONDS)
    return None


def is_met(expected: Expectation, revision: Revision, lookup: Lookup, now: float) -> bool:
    if now >= expected.until:
        return True
    match expected:
        case Written(resource, at):
            return revision(resource) >= at
        case Deleted(resource, key, uid):
            obj = lookup(resource, key)
            return obj is None or uid_of(obj) != uid or is_deleted(obj)
