"""The API as a source of pods: those that are bound to a node, always as the full set.

Job: deliver a node's whole set whenever it changes; many nodes of one process share one watch.
Invariant: a first change is delivered in the same turn of the event loop; those that follow within
    PACE_SECONDS make one delivery per node together.
Invariant: the first delivery comes when the first list is complete, even if it is empty.
Owner: whoever built the informer runs it.
"""

import asyncio
from collections.abc import Callable, Sequence

from sampan.api.objects import Obj
from sampan.api.resources import PODS
from sampan.client.contract import Client
from sampan.client.indexer import by_node_name
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.clock import Clock

Deliver = Callable[[Sequence[Obj]], None]
INDEX = "node"
# A delivery costs as much as the node has pods: in a burst, not one per change.
PACE_SECONDS = 0.02
AT_ONCE = 50  # nodes that are told in one turn of the event loop


def informer_of_node(client: Client, node_name: str, *, clock: Clock) -> Informer:
    """For a process with one node: only its own pods come over the wire."""
    selection = Selection(PODS, field_selector=f"spec.nodeName={node_name}")
    return Informer(client, selection, clock=clock)


class ApiserverSource:
    """Routes the pods of an informer to the nodes that they are bound to."""

    def __init__(self, informer: Informer, others: Callable[[str], None] | None = None) -> None:
        """`others`: told of a change to the pods of a node that has not subscribed."""
        self._informer, self._others = informer, others
        self._informer.cache.add_index(INDEX, by_node_name)
        self._nodes: dict[str, Deliver] = {}
        self._changed: set[str] = set()
        self._due: list[str] = []  # nodes that are being told, one part after the other
        self._scheduled = False
        self._flushed_at = -PACE_SECONDS
        informer.on_change(self._note)

    def subscribe(self, node_name: str, deliver: Deliver) -> None:
        assert node_name not in self._nodes, node_name
        self._nodes[node_name] = deliver
        if self._informer.is_synced():
            self._mark(node_name)

    def unsubscribe(self, node_name: str) -> None:
        self._nodes.pop(node_name, None)

    async def run(self) -> None:
        """Tells every node of its first set; the rest comes by itself."""
        await self._informer.synced()
        for node_name in list(self._nodes):
            self._mark(node_name)

    def _note(self, old: Obj | None, new: Obj | None) -> None:
        for pod in (old, new):
            if pod is not None:
                for node_name in by_node_name(pod):
                    if node_name in self._nodes:
                        self._mark(node_name)
                    elif self._others is not None:
                        self._others(node_name)

    def _mark(self, node_name: str) -> None:
        self._changed.add(node_name)
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            loop.call_at(self._flushed_at + PACE_SECONDS, self._flush)

    def _flush(self) -> None:
        self._flushed_at = asyncio.get_running_loop().time()
        if not self._informer.is_synced():
            self._scheduled = False
            return  # the first list is being taken in; `run` delivers it
        self._due, self._changed = list(self._changed), set()
        self._tell_some()

    def _tell_some(self) -> None:
        """Many nodes are told in several turns of the event loop."""
        some, self._due = self._due[:AT_ONCE], self._due[AT_ONCE:]
        if self._due:
            asyncio.get_running_loop().call_soon(self._tell_some)
        else:
            self._scheduled = False
            if self._changed:
                self._mark(next(iter(self._changed)))
        for node_name in some:
            deliver = self._nodes.get(node_name)
            if deliver is not None:
                deliver(self._informer.cache.by(INDEX, node_name))
