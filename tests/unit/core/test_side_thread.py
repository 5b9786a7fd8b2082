import asyncio
import threading
import time
from functools import partial

import pytest

from sampan.core.side_thread import SideThread, working_for
from sampan.core.tasks import Tasks
from tests.support import virtual_time


def test_the_loop_goes_on_while_the_work_is_done():
    async def story():
        side, go = SideThread("test"), threading.Event()
        waiting = asyncio.ensure_future(side.run(lambda: go.wait(10)))  # noqa: TID251
        await asyncio.sleep(0)
        go.set()  # by the loop, which is free
        assert await waiting
        side.close()

    asyncio.run(story())


def test_a_failure_is_the_callers():
    async def story():
        side = SideThread("test")
        with pytest.raises(ValueError, match="invalid literal"):
            await side.run(lambda: int("x"))
        side.close()

    asyncio.run(story())


def test_everybody_has_a_turn_and_nobody_two_at_once():
    """Six of one are not in front of one of another."""

    async def story():
        side, tasks, done = SideThread("test", 2), Tasks("test"), []
        busy, most = {}, 0
        lock = threading.Lock()

        def work(who):
            nonlocal most
            with lock:
                busy[who] = busy.get(who, 0) + 1
                most = max(most, sum(busy.values()))
                assert busy[who] == 1
            time.sleep(0.005)
            with lock:
                busy[who] -= 1
                done.append(who)

        async def ask(who):
            working_for.set(who)
            await side.run(lambda: work(who))

        asked = [tasks.start("ask", ask(who)) for who in ["many"] * 20 + ["one", "other"]]
        await asyncio.wait(asked)
        assert done.index("one") < 6
        assert done.index("other") < 6
        assert most <= 2
        assert len(done) == 22
        side.close()

    asyncio.run(story())


def test_who_gives_up_leaves_the_turn_to_others():
    async def story():
        side, tasks, go = SideThread("test"), Tasks("test"), threading.Event()
        first = tasks.start("first", side.run(lambda: go.wait(10)))
        await asyncio.sleep(0)
        waiting = [tasks.start("more", side.run(lambda: "done")) for _ in range(5)]
        await asyncio.sleep(0)
        for each in waiting[:4]:
            each.cancel()
        go.set()
        assert await waiting[4] == "done"
        assert await first
        assert await side.run(lambda: 1) == 1
        side.close()

    asyncio.run(story())


def test_virtual_time_waits_for_what_is_worked_on():
    async def story():
        side, loop = SideThread("test"), asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            working = group.create_task(side.run(lambda: time.sleep(0.02)))
            await asyncio.sleep(0)
            await asyncio.sleep(3600)
            assert working.done()
        assert loop.time() == 3600
        side.close()

    virtual_time.run(story())


def test_who_is_cancelled_at_once_leaves_the_thread_to_others():
    async def story():
        side, tasks, done = SideThread("test"), Tasks("test"), []
        for at in range(20):
            working = tasks.start("work", side.run(partial(done.append, at)))
            await asyncio.sleep(0)
            working.cancel()
            await asyncio.wait([working])
            assert working.cancelled()
        await side.run(lambda: None)
        assert done[0] == 0
        side.close()

    asyncio.run(story())
