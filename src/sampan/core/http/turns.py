"""Fair turns: which request begins next, so many in one turn of the loop.

Job: let requests begin at once while a turn of the loop is young; then by groups (a user, or an
    address of who is nobody yet), one of each after the other.
Invariant: however many requests have come, what is begun in one turn of the loop takes about as
    long as a slice, and one request: whoever else has work on the loop has its turn.
Invariant: no stranger's request keeps a user's waiting for longer than a small slice.
Invariant: who is alone, or among few, never waits.
Owner: the connections of one server.
"""

import asyncio
from collections import deque

from sampan.core.clock import Clock

SLICE_SECONDS = 0.02
STRANGERS_SECONDS = 0.003  # for who has not said who it is: of a slice of its own
_LEAST_COST = 0.00002
_WEIGHT = 0.2  # of the newest, in the mean cost of a request


class _Waiting:
    """Requests of one sort: one of each group after the other."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds  # of one turn of the loop
        self._cost = 0.001  # of a request, as far as it did not wait for anything
        self.groups: dict[str, deque[asyncio.Future[None]]] = {}  # the next one's first

    def is_free(self, spent: float) -> bool:
        return not self.groups and spent < self._seconds

    async def mine(self, group: str) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self.groups.setdefault(group, deque()).append(waiter)
        await waiter

    def took(self, seconds: float) -> None:
        self._cost += _WEIGHT * (max(seconds, _LEAST_COST) - self._cost)

    def release(self) -> None:
        left = max(1, int(self._seconds / 2 / self._cost))
        while left and self.groups:
            group, waiting = next(iter(self.groups.items()))
            del self.groups[group]
            waiter = waiting.popleft()
            if waiting:
                self.groups[group] = waiting  # behind all others
            if not waiter.done():  # who gave up is passed over
                waiter.set_result(None)
                left -= 1


class Turns:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = 0.0  # this turn of the loop, if one is counted
        self._counted = False
        self.number = 0  # of turns of the loop that were counted
        self._of_users = _Waiting(SLICE_SECONDS)
        self._of_strangers = _Waiting(STRANGERS_SECONDS)

    def is_free(self, known: bool) -> bool:
        """Whether a request may begin at once."""
        waiting = self._of_users if known else self._of_strangers
        if not self._counted:
            self._count(self._clock.monotonic())
            return not waiting.groups
        return waiting.is_free(self._clock.monotonic() - self._began)

    async def mine(self, group: str, *, known: bool) -> None:
        """Until it is this one's turn."""
        await self._sort(known).mine(group)

    def took(self, seconds: float, *, known: bool) -> None:
        """By a request that waited for nothing."""
        self._sort(known).took(seconds)

    def now(self) -> float:
        return self._clock.monotonic()

    def _sort(self, known: bool) -> _Waiting:
        return self._of_users if known else self._of_strangers

    def _count(self, now: float) -> None:
        self._counted, self._began = True, now
        asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._counted = False
        self.number += 1
        if self._of_users.groups or self._of_strangers.groups:
            self._count(self._clock.monotonic())
            self._of_users.release()
            self._of_strangers.release()
