"""A clock that stands still until the test moves it: for tests with real I/O beside the timers.

Job: `await clock.advance(60)` wakes whoever sleeps until then, in order.
(Where there is no real I/O, virtual_time is simpler.)
"""

import asyncio
import heapq


class ManualClock:
    def __init__(self, epoch: float = 1_700_000_000.0) -> None:
        self._now = epoch
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waiter = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._now + seconds, self._count, waiter))
        await waiter

    def sleeping(self) -> int:
        """How many wait for a later moment."""
        return sum(not waiter.done() for _, _, waiter in self._sleepers)

    async def advance(self, seconds: float) -> None:
        until = self._now + seconds
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= until:
            self._now, _, waiter = heapq.heappop(self._sleepers)
            if not waiter.done():
                waiter.set_result(None)
            await self._settle()
        self._now = until

    async def _settle(self) -> None:
        """Let whoever was woken run until it sleeps again."""
        for _ in range(10):
            await asyncio.sleep(0)
