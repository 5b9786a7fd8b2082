"""Intake: what informers tell the scheduler, and long work on what it knows, one after the other.

Job: pass changes on in their order; have what is made of a pod of thousands of terms, claims or
    tolerations done beside the loop, while everything else waits.
Invariant: while the thread beside the loop works, nobody else changes what the scheduler knows.
Invariant: changes are applied in the order in which they came.
Owner: Scheduler.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Protocol, TypeVar

from sampan.api.objects import Obj
from sampan.core.side_thread import SideThread
from sampan.core.tasks import Tasks, give_way

T = TypeVar("T")
Changed = Callable[[Obj | None, Obj | None], None]
Work = Callable[[], Any]
Steps = Generator[Work, Any, None]  # yields what may take long, and is sent its result
PER_TURN = 32  # changes that have waited, applied in one turn of the loop


class Works(Protocol):
    """By whom something is worked out: at once, or beside the loop."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


def done_at_once(steps: Steps) -> None:
    try:
        work = next(steps)
        while True:
            work = steps.send(work())
    except StopIteration:
        return


class Intake:
    def __init__(self, side: SideThread, tasks: Tasks) -> None:
        self._side, self._tasks = side, tasks
        self._waiting: deque[Callable[[], Steps | None]] = deque()
        self._idle, self._free = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._free.set()
        self.turn = asyncio.Lock()  # of who works on what is known: an attempt, or a long change

    @property
    def is_free(self) -> bool:
        """Whether what is known can be read now."""
        return self._free.is_set()

    def through(self, changed: Changed) -> Changed:
        """The listener, for an informer."""

        def tell(old: Obj | None, new: Obj | None) -> None:
            if self._idle.is_set() and self._free.is_set():
                changed(old, new)
            else:
                self._later(partial(changed, old, new))

        return tell

    def in_steps(
        self, steps: Callable[[Obj | None, Obj | None], Steps], is_long: Callable[[Obj], bool]
    ) -> Changed:
        """Likewise, of what may take long."""
        short = self.through(lambda old, new: done_at_once(steps(old, new)))

        def tell(old: Obj | None, new: Obj | None) -> None:
            if is_long(new if new is not None else old or {}):
                self._later(partial(steps, old, new))
            else:
                short(old, new)

        return tell

    async def alone(self, work: Callable[[], T]) -> T:
        """Beside the loop; whoever calls it has the turn."""
        assert self.turn.locked()
        self._free.clear()
        try:
            return await self._side.run(work)
        finally:
            self._free.set()

    async def freed(self) -> None:
        while not self._free.is_set():  # whoever heard of it first may have begun something again
            await self._free.wait()

    async def settled(self) -> None:
        """Everything that was told is known."""
        await self._idle.wait()

    def _later(self, change: Callable[[], Steps | None]) -> None:
        self._waiting.append(change)
        if self._idle.is_set():
            self._idle.clear()
            self._tasks.supervise("intake", self._take_in)

    async def _take_in(self) -> None:
        applied = 0
        while self._waiting:
            async with self.turn:
                change = self._waiting.popleft()
                steps = change()
                if steps is not None:
                    await self._done_beside(steps)
            applied += 1
            if not applied % PER_TURN:
                await give_way()
        self._idle.set()

    async def _done_beside(self, steps: Steps) -> None:
        try:
            work = next(steps)
            while True:
                work = steps.send(await self.alone(work))
        except StopIteration:
            return
