"""A wake-up for the one task that waits for something.

Job: what a future does that one reader waits on again and again; flag.Flag is for several.
Invariant: one waits at a time; to wake nobody costs nothing, and is not remembered.
"""

import asyncio


class Wakeup:
    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        assert self._waiter is None, "one waits at a time"
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
