"""Work that would hold the loop for too long, done beside it.

Job: run plain functions in a thread or two, everybody's in turn.
Invariant: one at a time for each of those it is done for: who asks for much waits for itself.
Invariant: few at once: the interpreter is shared, and the loop gets every other turn of it.
Owner: whoever made it; `close` waits for nothing.
"""

import asyncio
import contextlib
import contextvars
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sampan.core.clock import SystemClock

T = TypeVar("T")
# For whom the current task works: a user's name; empty: the cluster itself.
working_for: contextvars.ContextVar[str] = contextvars.ContextVar("working_for", default="")


def countdown(seconds: float) -> Callable[[], bool]:
    """Whether that much time has passed: of the machine, since a thread has no other."""
    clock = SystemClock()
    latest = clock.monotonic() + seconds
    return lambda: clock.monotonic() > latest


class SideThread:
    def __init__(self, name: str, threads: int = 1) -> None:
        """`threads`: more than one only where somebody may keep one busy for long."""
        self._most = threads
        self._threads = ThreadPoolExecutor(threads, f"sampan-{name}")
        self._served: set[str] = set()  # for whom something runs
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the next one's first

    async def run(self, work: Callable[[], T]) -> T:
        """The result, or what it raised. Whoever is cancelled leaves; what was to begin goes on."""
        context = contextvars.copy_context()
        loop, who = asyncio.get_running_loop(), working_for.get()
        if self._waiting or who in self._served or len(self._served) >= self._most:
            await self._turn(who)
        self._served.add(who)

        def worked() -> T:
            try:
                return context.run(work)
            finally:
                with contextlib.suppress(RuntimeError):  # the loop is gone
                    loop.call_soon_threadsafe(self._ended, who)

        # By the loop, as one of virtual time waits for what it has given to threads.
        return await asyncio.shield(loop.run_in_executor(self._threads, worked))

    async def _turn(self, who: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._ended(who)  # it was to begin, and will not
            raise

    def _ended(self, who: str) -> None:
        self._served.discard(who)
        for other in list(self._waiting):
            if len(self._served) >= self._most:
                return
            if other not in self._served and self._begin(other):
                self._served.add(other)  # at once: whoever comes now comes later

    def _begin(self, who: str) -> bool:
        """The next one's turn; behind all others is who has more."""
        waiting = self._waiting.pop(who)
        turn = None
        while waiting and turn is None:
            first = waiting.popleft()
            turn = None if first.done() else first  # who gave up is passed over
        if waiting:
            self._waiting[who] = waiting
        if turn is not None:
            turn.set_result(None)
        return turn is not None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
