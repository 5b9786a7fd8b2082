"""The Node object of this node, watched.

Job: tell each node of every change to its Node; many nodes of one process share one watch.
Invariant: a change is told in the same turn of the event loop in which it is heard of.
Owner: whoever built the informer runs it.
"""

from collections.abc import Callable

from sampan.api.objects import Obj, name_of
from sampan.api.resources import NODES
from sampan.client.contract import Client
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.clock import Clock

Seen = Callable[[Obj], None]


def informer_of_own_node(client: Client, node_name: str, *, clock: Clock) -> Informer:
    """For a process with one node: only its own Node comes over the wire."""
    selection = Selection(NODES, field_selector=f"metadata.name={node_name}")
    return Informer(client, selection, clock=clock)


class NodeSource:
    """Routes the Nodes of an informer to the agents that they are about."""

    def __init__(self, informer: Informer) -> None:
        self._seen: dict[str, Seen] = {}
        self._informer = informer
        informer.on_change(self._note)

    def subscribe(self, node_name: str, seen: Seen) -> None:
        assert node_name not in self._seen, node_name
        self._seen[node_name] = seen
        node = self._informer.cache.get(node_name)
        if node is not None:
            seen(node)

    def unsubscribe(self, node_name: str) -> None:
        self._seen.pop(node_name, None)

    def _note(self, _old: Obj | None, new: Obj | None) -> None:
        # A Node that somebody deleted is registered again with the next report.
        seen = self._seen.get(name_of(new)) if new is not None else None
        if new is not None and seen is not None:
            seen(new)
