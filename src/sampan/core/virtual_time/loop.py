"""An event loop that can be forked, that knows when nothing is left to do, and whose time may be
virtual.

Job: real or virtual time; say when the loop is idle; go on in a forked process as if alone.
Invariant: virtual time moves only by `advance`, and only while no task can run, no thread works,
    no I/O is ready and nobody outside is waited for; timers fire in their order, each at its own
    moment.
"""

import asyncio
import math
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sampan.core.virtual_time.machine_timers import MachineTimer, MachineTimers

# Where virtual time begins: the same each time, so that a history repeats itself.
EPOCH = 1_767_225_600.0  # 2026-01-01T00:00:00Z
RESOLUTION_SECONDS = 1e-6  # a sum of floats may miss a timer's moment by less
MOST_WAIT_SECONDS = 3600.0  # at once: the kernel takes no span of years
AT_ONCE_SECONDS = 0.1  # what is due within this is still "now" where time is real


class _Selector(selectors.DefaultSelector):
    """Asks its loop what to do where the original would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.when_idle: Callable[[float], bool] = lambda _gap: False
        self.wait_seconds: Callable[[float | None], float | None] = lambda timeout: timeout
        self.ring: Callable[[], bool] = lambda: False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        rung = self.ring()
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready or rung or timeout == 0:
            return ready
        if self.when_idle(math.inf if timeout is None else timeout):
            return super().select(0)
        return super().select(self.wait_seconds(timeout))


class SteppedLoop(asyncio.SelectorEventLoop):
    def __init__(self, *, virtual: bool) -> None:
        self._virtual = virtual
        self._now = 0.0
        self._ahead = 0.0  # of the machine, where time passes by itself again
        self._until = 0.0
        self._working = 0  # functions in threads
        self._looks: list[asyncio.Future[float]] = []
        self._listening: list[asyncio.Server] = []
        self._arrival: asyncio.Future[None] | None = None
        self._machine_timers = MachineTimers()
        # How long, by the machine's time, somebody outside is to be waited for: 0.0 for nobody.
        self.outside_wait: Callable[[], float] = lambda: 0.0
        self.abroad: Callable[[str], AbstractContextManager[None]] = lambda _name: nullcontext()
        self._selector: _Selector = self._new_selector()
        super().__init__(self._selector)
        self._clock_resolution = RESOLUTION_SECONDS

    def _new_selector(self) -> _Selector:
        selector = _Selector()
        selector.when_idle, selector.wait_seconds = self._look, self._wait_seconds
        selector.ring = self._ring
        return selector

    def time(self) -> float:
        return self._now if self._virtual else super().time() + self._ahead

    def machine_time(self) -> float:
        """Seconds that pass by themselves, whatever the loop's own time is."""
        return super().time()

    def let_go(self) -> None:
        """From now on time passes by itself: an end whose graces last must not wait for ever."""
        self._ahead = self.time() - super().time()
        self._virtual = False

    async def idle(self) -> float:
        """Returns when nobody can go on; says in how many seconds the next timer is due."""
        look: asyncio.Future[float] = self.create_future()
        self._looks.append(look)
        return await look

    async def settle(
        self, within_seconds: float, most_seconds: float = 60.0, *, outside: bool = False
    ) -> None:
        """Returns when nothing is due within `within_seconds`, and, where they matter, those
        outside are quiet; gives up after `most_seconds`, for what has something to do all the time
        never settles."""
        until = self.time() + most_seconds
        while self.time() < until:
            gap = await self.idle()
            if outside and (wait := self.outside_wait()) > 0:
                await self.machine_sleep(wait)
            elif gap > within_seconds:
                return
            elif self._virtual:
                await self.advance(gap)
            else:
                await asyncio.sleep(gap)

    async def advance(self, seconds: float) -> None:
        """Returns when everything is done that is due until then."""
        assert self._virtual, "real time passes by itself"
        assert self._arrival is None, "somebody else is moving the clock"
        self._until = self._now + seconds
        self._arrival = self.create_future()
        try:
            await self._arrival
        finally:
            self._arrival, self._until = None, self._now

    async def step(self, changed: Callable[[], bool], most_seconds: float) -> float:
        """From timer to timer until something has changed, at most so far; says how far it was."""
        began = self.time()
        until = began + most_seconds
        while not changed() and self.time() < until:
            await self.advance(min(await self.idle(), until - self.time()))
        await self.settle(0.0, outside=True)
        return self.time() - began

    async def create_server(self, *args: Any, **words: Any) -> asyncio.Server:
        server = await super().create_server(*args, **words)
        self._listening.append(server)
        return server

    def renew(self) -> None:
        """In a forked process: what the kernel knows of the loop is the other's, too: its
        connections, whoever listens, and its threads."""
        private: Any = self  # asyncio has no public way to this
        self._selector.close()
        self._selector = self._new_selector()
        for transport in list(private._transports.values()):
            transport.abort()
        for server in self._listening:
            server.close()
        self._listening.clear()
        private._close_self_pipe()
        private._make_self_pipe()
        private._default_executor = None

    def run_in_executor(  # type: ignore[override]  # as its parent, whose types are looser
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        if self._virtual:
            # Beside the loop it would end at any of its turns, each time at another.
            return self.create_task(_call(func, *args))
        future = super().run_in_executor(executor, func, *args)
        self._working += 1
        future.add_done_callback(self._note_end)
        return future

    def machine_call_later(
        self, seconds: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle | MachineTimer:
        """By the machine's time, for who lives by it."""
        if not self._virtual:
            return self.call_later(seconds, callback, *args)
        return self._machine_timers.add(self.machine_time() + seconds, callback, *args)

    async def machine_sleep(self, seconds: float) -> None:
        """By the machine's time, for who waits outside; virtual time stands still meanwhile."""
        over: asyncio.Future[None] = self.create_future()
        timer = self.machine_call_later(seconds, over.set_result, None)
        self._working += 1
        try:
            await over
        finally:
            self._working -= 1
            timer.cancel()

    def _note_end(self, _future: asyncio.Future[Any]) -> None:
        self._working -= 1

    def _ring(self) -> bool:
        """Whether a machine timer was due."""
        due = self._machine_timers.due(self.machine_time()) if self._machine_timers else ()
        for timer in due:
            self.call_soon(timer.callback, *timer.args)
        return bool(due)

    def _wait_seconds(self, timeout: float | None) -> float | None:
        return self._until_ring(None if self._virtual else timeout)

    def _until_ring(self, timeout: float | None) -> float | None:
        when = self._machine_timers.next_when()
        if when is None:
            return timeout
        ring = min(max(0.0, when - self.machine_time()), MOST_WAIT_SECONDS)
        return ring if timeout is None else min(ring, timeout)

    def _look(self, gap: float) -> bool:
        """Nobody can go on before `gap` has passed: True where somebody can, after all."""
        if self._working:
            return False
        if self._arrival is not None and not self._arrival.done():
            return self._move(gap)
        looks, self._looks = self._looks, []
        for look in looks:
            if not look.done():
                look.set_result(gap)
        return bool(looks)

    def _move(self, gap: float) -> bool:
        if (wait := self.outside_wait()) > 0:
            selectors.DefaultSelector.select(self._selector, self._until_ring(wait))
            return True  # what came is looked at first
        if self._now + gap <= self._until + RESOLUTION_SECONDS:
            self._now += gap
            return True
        self._now = max(self._now, self._until)
        assert self._arrival is not None
        self._arrival.set_result(None)
        return True


async def _call(func: Callable[..., Any], *args: Any) -> Any:
    return func(*args)


class VirtualClock:
    """Wall time tied to the loop, so that timers and timestamps agree."""

    def __init__(self, loop: SteppedLoop, epoch: float = EPOCH) -> None:
        self._loop, self._epoch = loop, epoch

    def now(self) -> float:
        return self._epoch + self._loop.time()

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
