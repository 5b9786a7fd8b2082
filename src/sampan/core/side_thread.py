"""Work that would hold the loop for too long, done beside it.

Job: run plain functions in one thread, in turn.
Invariant: one at a time: the interpreter is shared, and the loop gets every other turn of it.
Owner: whoever made it; `close` waits for nothing.
"""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sampan.core.clock import SystemClock

T = TypeVar("T")


def countdown(seconds: float) -> Callable[[], bool]:
    """Whether that much time has passed: of the machine, since a thread has no other."""
    clock = SystemClock()
    latest = clock.monotonic() + seconds
    return lambda: clock.monotonic() > latest


class SideThread:
    def __init__(self, name: str) -> None:
        self._threads = ThreadPoolExecutor(1, f"sampan-{name}")

    async def run(self, work: Callable[[], T]) -> T:
        """The result, or what it raised. Whoever is cancelled leaves; what has begun goes on."""
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, context.run, work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
