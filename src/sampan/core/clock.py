"""Time as an argument: the one place that asks the machine what time it is.

Job: wall time for timestamps, monotonic time for durations, and sleeping, behind one interface.
Owner: whoever builds a part passes it a clock; pure code takes `now` as a plain number instead.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Wall time, in seconds since 1970."""

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean something."""

    async def sleep(self, seconds: float) -> None: ...


def thread_seconds(thread: int) -> float:
    """What a thread of this process has had of a processor, by its identity."""
    return time.clock_gettime(time.pthread_getcpuclockid(thread))


def program_began() -> float:
    """By SystemClock.monotonic, for a program that has only just come to its work: loading it takes
    a processor and waits for nothing. (The kernel's start of the process may be a shell's, which
    has been there for hours.)"""
    return time.monotonic() - time.process_time()


class SystemClock:
    # Asked many times per request: without a call of ours in between.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        import asyncio  # here: a command that only asks the time does not pay for it

        await asyncio.sleep(seconds)
