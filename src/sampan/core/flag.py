"""A flag that tasks wait for.

Job: what asyncio.Event does, where there are thousands: that one keeps a queue of 600 bytes, also
    while nobody waits.
"""

import asyncio


class Flag:
    __slots__ = ("_is_set", "_waiters")

    def __init__(self) -> None:
        self._is_set = False
        self._waiters: list[asyncio.Future[None]] | None = None  # most have nobody

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        for waiter in self._waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        """Whoever was woken by `set` goes on all the same."""
        self._is_set = False

    async def wait(self) -> None:
        if self._is_set:
            return
        waiter = asyncio.get_running_loop().create_future()
        waiters = self._waiters
        if waiters is None:
            waiters = self._waiters = []
        waiters.append(waiter)
        try:
            await waiter
        finally:
            waiters.remove(waiter)
