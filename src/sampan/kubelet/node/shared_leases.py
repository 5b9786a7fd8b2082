"""The leases of many nodes of one process, renewed together.

Job: share out the nodes over the heartbeat's seconds; renew each share in one call.
Invariant: whoever waits is renewed once in `every_seconds`, or told to renew by itself; one that
    was away is renewed soon, before its share is.
Invariant: a node that waits no more is not renewed; while nobody waits, nothing happens.
Owner: whoever runs the nodes; `due` may be called from anywhere in the same event loop.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from itertools import islice

from sampan.api.objects import micro_time_text
from sampan.core.clock import Clock

SHARES = 40
SOON_AT_ONCE = 250  # nodes that were away, in one call
Renew = Callable[[Mapping[str, str]], Awaitable[Collection[str]]]


class SharedLeases:
    def __init__(
        self, renew: Renew, clock: Clock, every_seconds: float, shares: int = SHARES
    ) -> None:
        """`renew`: node → renewTime, and those that it could not renew."""
        self._renew, self._clock, self._pause = renew, clock, every_seconds / shares
        self._shares: list[dict[str, asyncio.Future[None]]] = [{} for _ in range(shares)]
        self._soon: dict[str, asyncio.Future[None]] = {}
        self._joined = asyncio.Event()

    async def due(self, node: str, *, soon: bool = False) -> None:
        """Keeps the node's lease renewed. Returns when the node has to do that itself, once.
        `soon`: nobody has renewed it for a while."""
        share = min(self._shares, key=len)
        waiting = share[node] = asyncio.get_running_loop().create_future()
        if soon:
            self._soon[node] = waiting
        self._joined.set()
        try:
            await waiting
        finally:
            for place in (share, self._soon):
                if place.get(node) is waiting:
                    del place[node]

    async def run(self) -> None:
        """Until cancelled."""
        began, turn = self._clock.monotonic(), 0
        while True:
            self._joined.clear()
            following = self._following(turn)
            if await self._joined_before(began + following * self._pause):
                # Whoever came is renewed with one of the shares that are still ahead.
                turn = max(turn, int((self._clock.monotonic() - began) / self._pause))
                continue
            turn = int(following)
            some = dict(islice(self._soon.items(), SOON_AT_ONCE))
            for node in some:
                del self._soon[node]
            await self._renew_share(some)
            await self._renew_share(self._shares[(turn - 1) % len(self._shares)])

    def _following(self, turn: int) -> float:
        """The next turn that has somebody to renew."""
        if self._soon:
            return turn + 1
        ahead = range(turn, turn + len(self._shares))
        waiting = (at + 1 for at in ahead if self._shares[at % len(self._shares)])
        return next(waiting, math.inf)

    async def _joined_before(self, moment: float) -> bool:
        seconds = moment - self._clock.monotonic()
        try:
            async with asyncio.timeout(None if math.isinf(seconds) else seconds):
                await self._joined.wait()
        except TimeoutError:
            return False
        return True

    async def _renew_share(self, share: dict[str, asyncio.Future[None]]) -> None:
        if not share:
            return
        now = micro_time_text(self._clock.now())
        for node in await self._renew(dict.fromkeys(share, now)):
            waiting = share.get(node)
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
