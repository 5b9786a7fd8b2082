"""The machine's time, where the time of an event loop may be virtual.

Job: timers for clients, who live by no other; say that somebody outside is asked and has to answer.
Invariant: on an ordinary loop both are what asyncio has.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


def call_later(seconds: float, callback: Callable[[], object]) -> Timer:
    loop = asyncio.get_running_loop()
    later: Callable[[float, Callable[[], object]], Timer] = getattr(
        loop, "machine_call_later", loop.call_later
    )
    return later(seconds, callback)


_HERE = nullcontext()


def abroad(url: object) -> AbstractContextManager[None]:
    """While it is entered, virtual time stands still for whoever answers there."""
    leave: Callable[[str], AbstractContextManager[None]] | None
    leave = getattr(asyncio.get_running_loop(), "abroad", None)
    return _HERE if leave is None else leave(str(url))
