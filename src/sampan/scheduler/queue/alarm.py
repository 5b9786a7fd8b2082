"""One timer that is set again and again.

Job: call once at a moment.
Invariant: a new moment replaces the old one; no moment, no timer.
Owner: the scheduler's loop.
"""

import asyncio
from collections.abc import Callable

from sampan.core.clock import Clock
from sampan.core.tasks import Tasks


class Alarm:
    def __init__(self, clock: Clock, tasks: Tasks, call: Callable[[], None]) -> None:
        self._clock, self._tasks, self._call = clock, tasks, call
        self._task: asyncio.Task[None] | None = None
        self._at: float | None = None

    def set(self, at: float | None) -> None:
        if at == self._at and self._task is not None and not self._task.done():
            return
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._at = at
        if at is not None:
            self._task = self._tasks.start("alarm", self._ring(at))

    async def _ring(self, at: float) -> None:
        await self._clock.sleep(max(0.0, at - self._clock.monotonic()))
        self._call()
