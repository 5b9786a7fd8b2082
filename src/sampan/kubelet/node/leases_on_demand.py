"""Node leases on virtual time: renewed when they are read.

Job: renew all that are kept here before they are read; every `every_seconds` only while somebody
    follows them.
Invariant: who reads a lease of a node that is kept here finds it renewed at that moment; while
    nobody reads them, nothing happens.
Invariant: who keeps the nodes says when one falls silent (`say_last_word`): nobody else can tell.
Owner: whoever runs the nodes; all of it may be called from anywhere in the same event loop.
"""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sampan.api.objects import micro_time_text
from sampan.core.clock import Clock
from sampan.kubelet.node.shared_leases import Alone, Renew, until_alone


class LeasesOnDemand:
    def __init__(self, renew: Renew, clock: Clock, every_seconds: float) -> None:
        """`renew`: node → renewTime, and those that it could not renew."""
        self._renew, self._clock, self._pause = renew, clock, every_seconds
        self._nodes: dict[str, Alone] = {}
        self._followers = 0
        self._followed = asyncio.Event()

    def keep(self, node: str, alone: Alone, *, soon: bool = False) -> None:
        """However long it was away: who reads its lease finds it renewed."""
        self._nodes[node] = alone

    def let_go(self, node: str, alone: Alone) -> None:
        if self._nodes.get(node) is alone:
            del self._nodes[node]

    async def due(self, node: str, *, soon: bool = False) -> None:
        """An agent that is back says so at once."""
        now = micro_time_text(self._clock.now())
        if not soon or not await self._renew({node: now}):
            await until_alone(self, node, soon=soon)

    async def renew(self, nodes: Collection[str] | None = None) -> None:
        """Those that are kept here; all of them, where none are named."""
        chosen = self._nodes.keys() if nodes is None else self._nodes.keys() & set(nodes)
        if not chosen:
            return
        now = micro_time_text(self._clock.now())
        for node in await self._renew(dict.fromkeys(sorted(chosen), now)):
            alone = self._nodes.get(node)
            if alone is not None:
                self.let_go(node, alone)
                alone()

    async def say_last_word(self, node: str) -> None:
        """It is silent from now on."""
        await self._renew({node: micro_time_text(self._clock.now())})

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Somebody waits for renewals until the end of the context."""
        self._followers += 1
        self._followed.set()
        try:
            yield
        finally:
            self._followers -= 1
            if not self._followers:
                self._followed.clear()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._followed.wait()
            await self._clock.sleep(self._pause)
            await self.renew()
