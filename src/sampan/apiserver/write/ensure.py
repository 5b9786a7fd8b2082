"""Objects that the server itself creates and keeps up to date.

Job: create them where they are missing, bring them up to date where they are not.
"""

from collections.abc import Awaitable, Callable

from sampan.api.defaults import apply_defaults
from sampan.api.errors import AlreadyExists, Timeout
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.api.resources import Resource
from sampan.apiserver.registry.generic import Stale, Terms
from sampan.apiserver.registry.metadata import new_uid, prepare_created
from sampan.apiserver.write.object_rules import go_form
from sampan.apiserver.write.request_scope import RequestScope
from sampan.core.clock import Clock
from sampan.core.log import get_logger

log = get_logger(__name__)

INSIST_SECONDS, INSIST_PAUSE_SECONDS = 30.0, 1.0


async def ensure(scope: RequestScope, resource: Resource, obj: Obj) -> None:
    """Create what the server itself needs, if it is not there."""
    strategy = scope.strategies.of(resource)
    obj = go_form(scope.schema, resource, obj)
    apply_defaults(resource, obj)
    prepare_created(obj, new_uid(scope.rng), scope.clock.now(), strategy.has_generation)
    strategy.prepare_create(obj)
    try:
        await scope.registry.insert(resource, obj, Terms(strategy.ttl_seconds))
    except AlreadyExists:
        return


async def overwrite(scope: RequestScope, resource: Resource, obj: Obj) -> None:
    """Bring what the server itself owns up to date; whoever was faster has done it."""
    item = await scope.registry.current(resource, namespace_of(obj), name_of(obj))
    try:
        await scope.registry.replace(
            resource, item, obj, Terms(scope.strategies.of(resource).ttl_seconds)
        )
    except Stale:
        return


async def insist(work: Callable[[], Awaitable[object]], clock: Clock) -> None:
    """At a start the store may be slow; as upstream's hooks after the start. Raises ApiError."""
    until = clock.monotonic() + INSIST_SECONDS
    while True:
        try:
            await work()
            return
        except Timeout as error:
            if clock.monotonic() >= until:
                raise
            log.warning("first objects were not written, trying again", error=error)
            await clock.sleep(INSIST_PAUSE_SECONDS)
