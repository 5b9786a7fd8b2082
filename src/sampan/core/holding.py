"""Take, commit, release: what is taken for a piece of work is kept if it is done, else let go.

Job: one context manager for everything that is taken before it is known whether it will be needed;
    and the way to run a step that must not be left half done.
Invariant: however the block ends (a return, an error, cancellation at any await), each taker is
    told the outcome exactly once, and runs to its end.
Invariant: cancellation is passed on, after the step that it came in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from enum import Enum, auto
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Outcome(Enum):
    RELEASED = auto()  # it was not done
    COMMITTED = auto()
    UNKNOWN = auto()  # whoever was asked did not say


Settle = Callable[[Outcome], Awaitable[None] | None]


class Hold:
    """What one piece of work has taken so far. Whoever does the work says `commit` in the very step
    in which it is done: how the block ends says nothing about that."""

    __slots__ = ("_takers", "outcome")

    def __init__(self) -> None:
        self.outcome = Outcome.RELEASED
        self._takers: list[Settle] = []

    def add(self, settle: Settle) -> None:
        """To be called with the outcome, last one first. Say so before you take."""
        self._takers.append(settle)

    def commit(self) -> None:
        self.outcome = Outcome.COMMITTED

    def doubt(self) -> None:
        self.outcome = Outcome.UNKNOWN

    def __enter__(self) -> "Hold":
        return self

    def __exit__(self, *how: object) -> None:
        if self._takers:
            settle = self._takers.pop()
            try:
                waiting = settle(self.outcome)
                assert waiting is None, "a taker that waits needs `async with`"
            finally:
                self.__exit__(*how)

    async def __aenter__(self) -> "Hold":
        return self

    async def __aexit__(self, *how: object) -> None:
        if self._takers:
            await run_to_end(self._settle())

    async def _settle(self) -> None:
        settle = self._takers.pop()
        try:
            waiting = settle(self.outcome)
            if waiting is not None:
                await waiting
        finally:
            if self._takers:
                await self._settle()


def run_to_end(work: Coroutine[Any, Any, T]) -> "Awaitable[T]":
    """The result of `work`. Who is cancelled meanwhile is cancelled when it is over, not before: so
    `work` sees to its own deadlines, and not by asyncio.timeout, which is a cancellation too."""
    return _ToEnd(work)


class _ToEnd(Generic[T]):
    """Drives `work` in the caller's own task: what it waits for is waited for at arm's length, so
    that a cancellation reaches us and not it. Where nobody is cancelled this costs a future."""

    __slots__ = ("_work",)

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, None, T]:
        steps = self._work.__await__()
        cancelled: asyncio.CancelledError | None = None
        try:
            while True:
                try:
                    waiting = steps.send(None)
                except StopIteration as end:
                    result: T = end.value
                    break
                if waiting is None:  # it only lets others run
                    try:
                        yield None
                    except asyncio.CancelledError as error:
                        cancelled = error
                while waiting is not None and not waiting.done():
                    try:
                        yield from _until_done(waiting)
                    except asyncio.CancelledError as error:
                        cancelled = error
        finally:
            steps.close()
            if cancelled is not None:
                raise cancelled
        return result


def _until_done(waiting: "asyncio.Future[object]") -> Generator[Any, None, None]:
    """Until it is done, well or badly; it is not cancelled with us."""
    reached: asyncio.Future[None] = waiting.get_loop().create_future()

    def reach(_: "asyncio.Future[object]") -> None:
        if not reached.done():
            reached.set_result(None)

    waiting.add_done_callback(reach)
    try:
        yield from reached
    finally:
        waiting.remove_done_callback(reach)
