"""The loop of a test cluster: its time, its rest, and what a fork of it is."""

import asyncio
import os
import time

import pytest

from sampan.core.virtual_time.loop import SteppedLoop


def run(main, virtual=True):
    with asyncio.Runner(loop_factory=lambda: SteppedLoop(virtual=virtual)) as runner:
        return runner.run(main)


def loop() -> SteppedLoop:
    found = asyncio.get_running_loop()
    assert isinstance(found, SteppedLoop)
    return found


def test_virtual_time_stands_still_until_it_is_moved():
    async def story():
        before = loop().time()
        await asyncio.to_thread(time.sleep, 0.01)
        assert loop().time() == before
        await loop().advance(3600)
        assert loop().time() == before + 3600

    run(story())


def test_timers_fire_in_their_order_each_at_its_own_moment():
    async def story():
        fired = []

        async def ring(seconds):
            await asyncio.sleep(seconds)
            fired.append((seconds, loop().time()))
            if seconds == 20:
                await ring(5)

        tasks = [loop().create_task(ring(seconds)) for seconds in (30, 10, 20, 90)]
        await loop().advance(60)
        assert fired == [(10, 10), (20, 20), (5, 25), (30, 30)]
        await loop().advance(30)
        assert fired[-1] == (90, 90)
        await asyncio.wait(tasks)

    run(story())


def test_nothing_is_skipped_while_a_thread_works():
    async def story():
        done = []

        async def work():
            await asyncio.sleep(1)
            done.append(await asyncio.to_thread(lambda: time.sleep(0.05) or loop_time()))

        start = loop()

        def loop_time():
            return start.time()

        task = start.create_task(work())
        await start.advance(1000)
        assert done == [1]
        await task

    run(story())


def test_what_others_do_in_threads_has_its_turn_in_the_loop():
    """Else it ended at another step of the rest each time."""

    async def steps():
        found = []

        async def count():
            for number in range(10):
                found.append(number)
                await asyncio.sleep(0)

        counting = loop().create_task(count())
        found.append(await asyncio.to_thread(lambda: "thread"))
        await counting
        return found

    async def story():
        found = [await steps() for _ in range(20)]
        assert found == [found[0]] * 20
        assert found[0].index("thread") < 5
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)

    run(story())


def test_who_waits_outside_waits_in_the_machines_time():
    async def story():
        began, before = time.monotonic(), loop().time()
        sleeping = loop().create_task(loop().machine_sleep(0.02))
        await asyncio.sleep(0)
        await loop().advance(10)
        assert sleeping.done()
        assert time.monotonic() - began >= 0.02
        assert loop().time() == before + 10

    run(story())


def test_it_settles_when_nothing_is_due_soon():
    async def story():
        steps = []

        async def work():
            for _ in range(3):
                await asyncio.sleep(0.05)
                steps.append(loop().time())
            await asyncio.sleep(50)

        task = loop().create_task(work())
        await loop().settle(0.1)
        assert len(steps) == 3
        assert loop().time() < 1
        task.cancel()

    run(story())
    run(story_of_real_time(), virtual=False)


async def story_of_real_time():
    ready = []
    loop().call_later(0.01, ready.append, 1)
    await loop().settle(0.1)
    assert ready == [1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # others' threads are not its concern
def test_a_forked_loop_goes_on_by_itself():
    """Its timers and tasks go on in both; what is done in one is not done in the other."""
    there, here = os.pipe()
    started = SteppedLoop(virtual=True)
    heard = []

    async def work():
        await asyncio.sleep(10)
        heard.append(os.getpid())
        return heard

    task = started.create_task(work())
    started.run_until_complete(asyncio.sleep(0))
    child = os.fork()
    if child == 0:
        started.renew()
        started.run_until_complete(started.advance(10))
        # A thread's answer arrives: the pipe that wakes the loop is its own.
        started.run_until_complete(asyncio.wait_for(started.run_in_executor(None, int), None))
        os.write(here, b"right" if heard == [os.getpid()] else b"wrong")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(there, 10) == b"right"
    assert heard == []
    started.run_until_complete(started.advance(10))
    assert heard == [os.getpid()]
    assert task.done()
    os.close(there)
    os.close(here)
    started.run_until_complete(started.shutdown_default_executor())
    started.close()


def test_time_that_is_let_go_passes_by_itself_from_where_it_was():
    async def story():
        await loop().advance(3600)
        loop().let_go()
        assert 3600 <= loop().time() < 3660
        await asyncio.wait_for(asyncio.sleep(0.01), 30)

    run(story())


def test_machine_timers_ring_while_virtual_time_stands_still():
    async def story():
        rung = []
        loop().machine_call_later(0.02, rung.append, "late")
        loop().machine_call_later(0.01, rung.append, "early")
        cancelled = loop().machine_call_later(0.005, rung.append, "never")
        cancelled.cancel()
        before = loop().time()
        await loop().machine_sleep(0.05)
        assert rung == ["early", "late"]
        assert loop().time() == before

    run(story())


def test_on_real_time_machine_timers_are_timers():
    async def story():
        rung = []
        loop().machine_call_later(0.001, rung.append, "now")
        await loop().machine_sleep(0.01)
        assert rung == ["now"]

    run(story(), virtual=False)


def test_time_moves_only_when_nobody_outside_is_waited_for():
    async def story():
        asked = []

        def wait():
            asked.append(loop().time())
            return 0.001 if len(asked) < 4 else 0.0

        loop().outside_wait = wait
        await loop().advance(60)
        assert asked[:4] == [0.0, 0.0, 0.0, 0.0]
        assert loop().time() == 60

    run(story())


def test_settling_waits_for_those_outside_where_they_matter():
    async def story():
        left = [3]

        def wait():
            left[0] -= 1
            return 0.001 if left[0] > 0 else 0.0

        loop().outside_wait = wait
        await loop().settle(0.1)
        assert left == [3]
        await loop().settle(0.1, outside=True)
        assert left == [0]

    run(story())


def test_a_step_ends_with_the_first_change():
    async def story():
        changes = []

        async def change():
            await asyncio.sleep(10)
            changes.append(10)
            await asyncio.sleep(10)
            changes.append(20)

        task = loop().create_task(change())
        assert await loop().step(lambda: bool(changes), 60) == 10
        assert changes == [10]
        assert await loop().step(lambda: len(changes) == 5, 60) == 60
        await task

    run(story())
