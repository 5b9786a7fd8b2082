"""Keys that delete themselves: what expires next, and one timer for it.

Job: call `expire(key, revision)` when a key's time has come.
Invariant: no timer runs while nothing can expire.
Invariant: a key that was rewritten or deleted meanwhile is not expired by its old time.
Owner: one store, in its event loop.
"""

import asyncio
import heapq
from collections.abc import Callable

from sampan.core.clock import Clock
from sampan.core.tasks import Tasks


class Expiry:
    def __init__(self, clock: Clock, tasks: Tasks, expire: Callable[[str, int], None]) -> None:
        self._clock, self._tasks, self._expire = clock, tasks, expire
        self._valid: dict[str, tuple[float, int]] = {}  # key → (moment, revision)
        self._heap: list[tuple[float, int, str]] = []
        self._timer: asyncio.Task[None] | None = None
        self._timer_at = 0.0

    def set(self, key: str, revision: int, at: float) -> None:
        """`key`, as written at `revision`, expires at the moment `at`."""
        self._valid[key] = (at, revision)
        heapq.heappush(self._heap, (at, revision, key))
        if len(self._heap) > 2 * len(self._valid) + 64:  # mostly outdated: keep it bounded
            self._heap = [(at, revision, key) for key, (at, revision) in self._valid.items()]
            heapq.heapify(self._heap)
        self._arm()

    def forget(self, key: str) -> None:
        self._valid.pop(key, None)

    def _arm(self) -> None:
        while self._heap and self._valid.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        if not self._heap:
            return
        at = self._heap[0][0]
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._tasks.start("expiry", self._wait(at))

    async def _wait(self, at: float) -> None:
        await self._clock.sleep(max(0.0, at - self._clock.now()))
        self._timer = None
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            at, revision, key = heapq.heappop(self._heap)
            if self._valid.get(key) == (at, revision):
                del self._valid[key]
                self._expire(key, revision)
        self._arm()
