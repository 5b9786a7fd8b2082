"""The leases of many nodes of one process, renewed together.

Job: share out the nodes over the heartbeat's seconds; renew each share in one call.
Invariant: whoever is kept is renewed once in `every_seconds`, or told to renew by itself and no
    longer kept; one that was away is renewed soon, before its share is.
Invariant: a node that was let go is not renewed; while nobody is kept, nothing happens.
Owner: whoever runs the nodes; the rest may be called from anywhere in the same event loop.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from itertools import islice
from typing import NamedTuple, Protocol

from sampan.api.objects import micro_time_text
from sampan.core.bounded import Bounded
from sampan.core.clock import Clock

SHARES = 40
SOON_AT_ONCE = 250  # nodes that were away, in one call
MOST_LEFT = 10_000  # of whom it is remembered that they were let go
Renew = Callable[[Mapping[str, str]], Awaitable[Collection[str]]]
Alone = Callable[[], None]


class Leases(Protocol):
    """Who renews the leases of many nodes for them."""

    def keep(self, node: str, alone: Alone, *, soon: bool = False) -> None:
        """Renew the node's lease from now on; `alone` is told when it has to do that itself.
        `soon`: nobody has renewed it for a while, as far as its keeper knows."""

    def let_go(self, node: str, alone: Alone) -> None:
        """Whom somebody else keeps meanwhile stays."""

    async def due(self, node: str, *, soon: bool = False) -> None:
        """Keeps the node's lease renewed. Returns when the node has to do that itself, once."""


async def until_alone(leases: Leases, node: str, *, soon: bool) -> None:
    """Has the node kept until it has to renew its lease itself."""
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def alone() -> None:
        if not waiting.done():
            waiting.set_result(None)

    leases.keep(node, alone, soon=soon)
    try:
        await waiting
    finally:
        leases.let_go(node, alone)


class _Left(NamedTuple):
    """Who was let go, after having been renewed in time."""

    place: int  # of its share
    turn: int
    when: float


class SharedLeases:
    def __init__(
        self, renew: Renew, clock: Clock, every_seconds: float, shares: int = SHARES
    ) -> None:
        """`renew`: node → renewTime, and those that it could not renew."""
        self._renew, self._clock, self._pause = renew, clock, every_seconds / shares
        self._shares: list[dict[str, Alone]] = [{} for _ in range(shares)]
        self._soon: dict[str, Alone] = {}
        self._turns = [0] * shares  # how often each was renewed
        self._place: dict[str, int] = {}  # node → its share
        self._left: Bounded[str, _Left] = Bounded(MOST_LEFT)
        self._joined = asyncio.Event()

    def keep(self, node: str, alone: Alone, *, soon: bool = False) -> None:
        """Who was let go and comes back before its share's turn has missed none."""
        left = self._left.pop(node, None)
        if left is not None and self._has_missed_none(left):
            place, soon = left.place, False
        else:
            place = min(range(len(self._shares)), key=lambda each: len(self._shares[each]))
        if not self._shares[place] or (soon and not self._soon):
            self._joined.set()
        self._shares[place][node] = alone
        self._place[node] = place
        if soon:
            self._soon[node] = alone

    def _has_missed_none(self, left: "_Left") -> bool:
        """A share that nobody is in has no turns: then the time says it."""
        is_recent = self._clock.monotonic() - left.when < self._pause * len(self._shares)
        return is_recent and self._turns[left.place] == left.turn

    def let_go(self, node: str, alone: Alone) -> None:
        place = self._place.get(node, -1)
        if place >= 0 and self._shares[place].get(node) is alone:
            del self._shares[place][node], self._place[node]
            if self._soon.get(node) is not alone:
                self._left[node] = _Left(place, self._turns[place], self._clock.monotonic())
        if self._soon.get(node) is alone:
            del self._soon[node]

    async def due(self, node: str, *, soon: bool = False) -> None:
        """Keeps the node's lease renewed. Returns when the node has to do that itself, once."""
        await until_alone(self, node, soon=soon)

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
            place = (turn - 1) % len(self._shares)
            self._turns[place] += 1
            await self._renew_share(self._shares[place])

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

    async def _renew_share(self, share: Mapping[str, Alone]) -> None:
        if not share:
            return
        now = micro_time_text(self._clock.now())
        for node in await self._renew(dict.fromkeys(share, now)):
            alone = share.get(node)
            if alone is not None:
                self.let_go(node, alone)
                alone()
