"""Kinds that have a scale, built in or not, and the scale of one object.

Job: an owner's or a target's apiVersion, kind and name → its Scale, as the API has it.
"""

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj
from sampan.api.resources import Resource, by_kind
from sampan.controllers.controller import View


class NoScale(Exception):
    """Why there is none, in upstream's words."""


class Unserved(NoScale):
    """Nobody serves the kind."""


async def scaled_resource(view: View, api_version: str, kind: str) -> Resource:
    """Raises NoScale for a kind that nobody serves, or whose number nobody can ask for."""
    found = by_kind(api_version or "v1", kind) or await _served(view, api_version, kind)
    if found is None:
        raise Unserved(f'no matches for kind "{kind}" in version "{api_version or "v1"}"')
    if found.subresource("scale") is None:
        raise NoScale(f"{found.group_resource} does not implement the scale subresource")
    return found


async def scale_of(view: View, resource: Resource, namespace: str, name: str) -> Obj | None:
    """None: there is no such object. Raises ApiError."""
    try:
        return await view.client.get(resource, namespace, name, subresource="scale")
    except NotFound:
        return None


async def _served(view: View, api_version: str, kind: str) -> Resource | None:
    group, _, version = api_version.rpartition("/")
    try:
        served = await view.client.resources(group, version)
    except ApiError:
        return None
    return next((resource for resource in served if resource.kind == kind), None)
