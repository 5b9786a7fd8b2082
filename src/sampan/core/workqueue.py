"""A queue of keys for reconcile loops: each key once, one worker per key, delays and backoff.

Job: hand out keys to workers; collapse repeats; hold a key back until its time.
Invariant: a key is never handed out while another worker still has it.
Invariant: a key added while it is worked on is handed out once more afterwards; none is lost.
Owner: the loop that reads it; `add` may be called from anywhere in the same event loop.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from sampan.core.backoff import Backoff

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    def __init__(
        self, backoff: Backoff | None = None, waited: Callable[[float], None] | None = None
    ) -> None:
        """`waited`: told how long each key was ready before a worker took it."""
        self.added = 0  # keys that became ready
        self._waited = waited
        self._ready_at: dict[K, float] = {}  # where somebody wants to know
        self._backoff = backoff or Backoff(first_seconds=0.005, cap_seconds=60.0)
        self._ready: OrderedDict[K, None] = OrderedDict()
        self._working: set[K] = set()
        self._again: set[K] = set()
        # With the moment: uvloop's handle of a timer that is due at once does not know its own.
        self._later: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        self._failures: dict[K, int] = {}
        self._waiters: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return len(self._ready)

    def idle(self) -> bool:
        """Nothing ready, nothing in work, nothing to be repeated (delayed keys do not count)."""
        return not self._ready and not self._working

    def add(self, key: K) -> None:
        if key in self._working:
            self._again.add(key)
            return
        if key not in self._ready:
            self.added += 1
            if self._waited is not None:
                self._ready_at[key] = asyncio.get_running_loop().time()
        self._ready[key] = None
        self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Hand `key` out after `seconds`; an earlier time that is already set stays."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        pending = self._later.get(key)
        if pending is not None:
            if pending[0] <= due:
                return
            pending[1].cancel()
        self._later[key] = (due, loop.call_later(seconds, self._due, key))

    def retry(self, key: K) -> float:
        """Hand `key` out again after its backoff; returns the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        seconds = self._backoff.delay(failures)
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """The key's work succeeded: its next failure starts the backoff anew."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; the caller must call `done` with it when it has finished."""
        while not self._ready:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                elif self._ready:
                    self._wake()  # this wake-up was meant for somebody: pass it on
                raise
        key, _ = self._ready.popitem(last=False)
        if self._waited is not None:
            now = asyncio.get_running_loop().time()
            self._waited(now - self._ready_at.pop(key, now))
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        for _, timer in self._later.values():
            timer.cancel()
        self._later.clear()

    def _due(self, key: K) -> None:
        del self._later[key]
        self.add(key)

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                return
