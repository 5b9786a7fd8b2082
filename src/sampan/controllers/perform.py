"""Carries a plan's actions out; holds no policy.

Job: one call of the API per action, several at a time where they are alike.
Invariant: actions of a different kind never overtake each other; after a failure nothing further of
    that kind is tried, so that a refusing server is not flooded, nor of the kinds behind it, unless
    the plan says that they go apart.
Invariant: creations start slowly (1, 2, 4 …), as upstream's slowStartBatch.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import assert_never

from sampan.api.errors import ApiError, Conflict, NotFound
from sampan.api.objects import Obj
from sampan.client.contract import Client, Preconditions
from sampan.client.events import EventRecorder
from sampan.controllers.actions import (
    Action,
    Create,
    Delete,
    Outcome,
    Patch,
    Record,
    Settled,
    Update,
)
from sampan.core.tasks import all_of

AT_ONCE = 32  # in one process they run in one go, up to their writes


async def perform(
    actions: Sequence[Action], client: Client, recorder: EventRecorder, *, apart: bool = False
) -> list[Outcome]:
    """The outcomes of what was tried: all actions, or those up to the first failure (`apart`: of
    each kind)."""
    outcomes: list[Outcome] = []
    for kind, alike in groupby(actions, key=type):
        pending = list(alike)
        size = 1 if kind is Create else AT_ONCE
        while pending:
            batch, pending = pending[:size], pending[size:]
            outcomes += await all_of(_outcome_of(action, client, recorder) for action in batch)
            if any(outcome.error is not None for outcome in outcomes[-len(batch) :]):
                if not apart:
                    return outcomes
                break
            size = min(AT_ONCE, size * 2)
    return outcomes


async def _outcome_of(action: Action, client: Client, recorder: EventRecorder) -> Outcome:
    try:
        return Outcome(action, await _call(action, client, recorder))
    except ApiError as error:
        if isinstance(error, _settled_errors(action)) or _is_too_late(action, error):
            return Outcome(action)
        return Outcome(action, error=error)


def _is_too_late(action: Action, error: ApiError) -> bool:
    """Nothing is created in a namespace that is going away, and trying again is no use."""
    causes = error.details.get("causes") or ()
    terminating = any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
    return isinstance(action, Create) and terminating


def _settled_errors(action: Action) -> Settled:
    match action:
        case Create() | Update() | Patch():
            return action.settled
        case Delete(revision=0):
            return (NotFound, Conflict)  # Conflict: another uid, so ours is gone
        case Delete():
            return (NotFound,)
        case Record():
            return ()
        case _:
            assert_never(action)


async def _call(action: Action, client: Client, recorder: EventRecorder) -> Obj | None:
    match action:
        case Create(resource, obj):
            namespace = (obj.get("metadata") or {}).get("namespace") or ""
            return await client.create(resource, obj, namespace)
        case Update(resource, obj, subresource):
            return await client.update(resource, obj, subresource=subresource)
        case Patch(resource, namespace, name, patch, patch_type, subresource):
            return await client.patch(
                resource, namespace, name, patch, patch_type=patch_type, subresource=subresource
            )
        case Delete(resource, namespace, name, uid, revision, grace_seconds, propagation):
            return await client.delete(
                resource,
                namespace,
                name,
                preconditions=Preconditions(uid, revision),
                grace_seconds=grace_seconds,
                propagation=propagation,
            )
        case Record(about, type_, reason, message):
            recorder.record(about, type_, reason, message)
            return None
        case _:
            assert_never(action)
