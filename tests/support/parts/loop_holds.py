"""How long the loop is held while something is done.

Job: `async with loop_holds() as holds: …`, then `holds.longest_seconds` and `holds.at(0.999)`.
Invariant: processor time of the loop's own thread counts, so that the load of others does not.
Invariant: the collector of garbage does not look at what was there before: in a worker of the suite
    that is what thousands of other tests have left.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Holds:
    longest_seconds = 0.0

    def __init__(self) -> None:
        self.turns: list[float] = []  # seconds, from one look to the next
        self._last = time.thread_time()
        self.over = False

    def at(self, part: float) -> float:
        """What so many of all turns have not taken longer than."""
        ordered = sorted(self.turns)
        return ordered[min(int(len(ordered) * part), len(ordered) - 1)]

    def __str__(self) -> str:
        each = ", ".join(
            f"p{part * 100:g} {self.at(part) * 1000:.1f}" for part in (0.5, 0.99, 0.999)
        )
        return f"{len(self.turns)} turns: {each}, longest {self.longest_seconds * 1000:.1f} ms"

    def tick(self) -> None:
        if self.over:
            return  # what comes afterwards is no part of it
        now = time.thread_time()
        self.longest_seconds = max(self.longest_seconds, now - self._last)
        self.turns.append(now - self._last)
        self._last = now
        # Not at once: whoever waits for a thread would wait in a busy loop.
        asyncio.get_running_loop().call_later(0.0005, self.tick)


@asynccontextmanager
async def loop_holds() -> AsyncIterator[Holds]:
    gc.freeze()
    holds = Holds()
    asyncio.get_running_loop().call_soon(holds.tick)
    try:
        await asyncio.sleep(0)
        yield holds
    finally:
        holds.tick()
        holds.over = True
        gc.unfreeze()
