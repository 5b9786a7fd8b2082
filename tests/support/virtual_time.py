"""A test event loop on which sleeping costs nothing.

Job: when every task waits on a timer, jump to that timer instead of waiting.
Invariant: virtual time moves only while no task can run, no I/O is ready and no thread works; for
    one that does not come to its end (it may wait for a timer) PATIENCE_SECONDS are waited.
"""

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

from sampan.core.clock import SystemClock

T = TypeVar("T")
PATIENCE_SECONDS = 2.0
_REAL = SystemClock()


class _JumpingSelector(selectors.DefaultSelector):
    jumped = 0.0
    working = 0  # functions in threads
    patient_until = 0.0  # in real time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready or timeout is None:
            return ready or super().select(timeout)
        left = self.patient_until - _REAL.monotonic() if self.working and timeout > 0 else 0.0
        if left > 0:
            return super().select(left)
        self.jumped += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumps = _JumpingSelector()
        super().__init__(self._jumps)

    def time(self) -> float:
        return self._jumps.jumped

    def run_in_executor(  # type: ignore[override]  # as its parent, whose types are looser
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        future = super().run_in_executor(executor, func, *args)
        self._jumps.working += 1
        self._jumps.patient_until = _REAL.monotonic() + PATIENCE_SECONDS
        future.add_done_callback(self._has_worked)
        return future

    async def shutdown_default_executor(self, _seconds: float | None = None) -> None:
        """Python 3.12 and newer give threads a deadline, to which this loop would jump."""
        await super().shutdown_default_executor()

    def _has_worked(self, _: "asyncio.Future[Any]") -> None:
        self._jumps.working -= 1


class LoopClock:
    """Wall time tied to the loop, so that timers and timestamps agree."""

    def __init__(self, epoch: float = 1_700_000_000.0) -> None:
        self._epoch = epoch
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> float:
        return self._epoch + self.monotonic()

    def jump(self, seconds: float) -> None:
        """As if somebody set the wall clock; timers go on as they were."""
        self._epoch += seconds

    def monotonic(self) -> float:
        with contextlib.suppress(RuntimeError):  # in a thread beside the loop
            self._loop = asyncio.get_running_loop()
        assert self._loop is not None, "nobody has asked on a loop yet"
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
