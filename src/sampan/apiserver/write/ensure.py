"""Objects that the server itself needs or owns.

Job: create them where they are missing, bring them up to date where they are not.
"""

from sampan.api.defaults import apply_defaults
from sampan.api.errors import AlreadyExists
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.api.resources import Resource
from sampan.apiserver.registry.generic import Stale, Terms
from sampan.apiserver.registry.metadata import new_uid, prepare_created
from sampan.apiserver.write.object_rules import go_form
from sampan.apiserver.write.parts import Parts


async def ensure(parts: Parts, resource: Resource, obj: Obj) -> None:
    """Create what the server itself needs, if it is not there."""
    strategy = parts.strategies.of(resource)
    obj = go_form(parts.schema, resource, obj)
    apply_defaults(resource, obj)
    prepare_created(obj, new_uid(parts.rng), parts.clock.now(), strategy.has_generation)
    strategy.prepare_create(obj)
    try:
        await parts.registry.insert(resource, obj, Terms(strategy.ttl_seconds))
    except AlreadyExists:
        return


async def overwrite(parts: Parts, resource: Resource, obj: Obj) -> None:
    """Bring what the server itself owns up to date; whoever was faster has done it."""
    item = await parts.registry.current(resource, namespace_of(obj), name_of(obj))
    try:
        await parts.registry.replace(
            resource, item, obj, Terms(parts.strategies.of(resource).ttl_seconds)
        )
    except Stale:
        return
