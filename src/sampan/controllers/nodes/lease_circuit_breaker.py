"""NodeControllerLeaseCircuitBreaker: no node is Unknown by a lease cache that is behind.

Job: before nodes are told unknown, compare their leases with what the server has of them; where one
    is another, nobody is judged until the cache has caught up.
"""

from collections.abc import Iterable

from sampan.api import features
from sampan.api.errors import NotFound
from sampan.api.objects import revision_of
from sampan.api.resources import LEASES, NODES
from sampan.controllers.actions import Patch, Plan
from sampan.controllers.controller import View
from sampan.core.log import get_logger

NAMESPACE = "kube-node-lease"
AGAIN_SECONDS = 5.0  # as often as upstream looks at nodes

log = get_logger(__name__)


async def unless_leases_are_behind(view: View, made: Plan) -> Plan:
    """The plan, or one to look again. Raises ApiError where the server cannot be asked."""
    silent = [
        action.name
        for action in made.actions
        if isinstance(action, Patch) and action.resource is NODES and action.subresource == "status"
    ]
    if not silent or not features.enabled("NodeControllerLeaseCircuitBreaker"):
        return made
    if not await _are_behind(view, silent):
        return made
    log.warning("leases in the cache are older than the server's, no node is judged by them")
    return Plan([], again_seconds=AGAIN_SECONDS)


async def _are_behind(view: View, names: Iterable[str]) -> bool:
    cache = view.cache(LEASES)
    for name in names:
        known = cache.get(f"{NAMESPACE}/{name}")
        try:
            found = await view.client.get(LEASES, NAMESPACE, name)
        except NotFound:
            continue  # of a node that has none, or whose node is going
        if known is None or revision_of(known) != revision_of(found):
            return True
    return False
