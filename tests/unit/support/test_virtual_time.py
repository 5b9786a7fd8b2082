"""testing/virtual_time.py: sleeping costs nothing, and order stays right."""

import asyncio
import threading

from sampan.core.tasks import all_of
from tests.support import virtual_time


def test_a_day_passes_at_once_and_in_order():
    woken = []

    async def sleeper(seconds):
        await asyncio.sleep(seconds)
        woken.append(seconds)

    async def main():
        clock = virtual_time.LoopClock(epoch=1000.0)
        await all_of([sleeper(86_400), sleeper(1), sleeper(3600)])
        return clock.now(), clock.monotonic()

    assert virtual_time.run(main()) == (87_400.0, 86_400.0)
    assert woken == [1, 3600, 86_400]


def test_no_time_passes_while_a_thread_works():
    async def main():
        clock, may_end = virtual_time.LoopClock(), threading.Event()
        work = asyncio.get_running_loop().run_in_executor(None, may_end.wait, 60.0)
        asyncio.get_running_loop().call_soon(may_end.set)
        timer = asyncio.get_running_loop().call_later(3600.0, lambda: None)
        await work
        timer.cancel()
        return clock.monotonic()

    assert virtual_time.run(main()) == 0.0


def test_a_thread_that_waits_for_a_timer_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(virtual_time, "PATIENCE_SECONDS", 0.01)

    async def main():
        may_end = threading.Event()
        work = asyncio.get_running_loop().run_in_executor(None, may_end.wait, 60.0)
        await asyncio.sleep(3600.0)
        may_end.set()
        assert await work

    virtual_time.run(main())


def test_a_loop_that_closes_jumps_to_no_deadline_of_its_threads():
    """Python 3.12 and newer close a loop with one."""

    async def story():
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, int)
        await loop.shutdown_default_executor(300.0)
        assert loop.time() == 0.0

    virtual_time.run(story())
