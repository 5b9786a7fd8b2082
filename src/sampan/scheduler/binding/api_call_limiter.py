"""API calls in the background: so many in flight, then the next decision waits.

Job: start them, count them.
Invariant: who only waits for others to act does not count.
Owner: the scheduler's loop.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from sampan.core.tasks import Tasks

MOST_CALLS = 256
CALL_SECONDS = 30.0


class Calls:
    def __init__(self, tasks: Tasks, freed: Callable[[], None]) -> None:
        """`freed`: called when there is room for another one."""
        self._tasks, self._freed = tasks, freed
        self._running = 0

    @property
    def full(self) -> bool:
        return self._running >= MOST_CALLS

    def start(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._running += 1
        self._tasks.start(name, self._counted(work))

    @asynccontextmanager
    async def not_counted(self) -> AsyncIterator[None]:
        """Waiting takes nobody's turn."""
        self._running -= 1
        self._freed()
        try:
            yield
        finally:
            self._running += 1

    async def _counted(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        finally:
            if self.full:
                self._freed()
            self._running -= 1
