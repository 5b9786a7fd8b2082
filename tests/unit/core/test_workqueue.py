"""core/workqueue.py: each key once, one worker per key, none lost."""

import asyncio

import uvloop
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.backoff import Backoff
from sampan.core.tasks import Tasks
from sampan.core.workqueue import WorkQueue
from tests.support import virtual_time


def test_a_key_added_twice_is_handed_out_once():
    async def main():
        queue = WorkQueue()
        queue.add("a")
        queue.add("b")
        queue.add("a")
        assert [await queue.get(), await queue.get()] == ["a", "b"]
        assert len(queue) == 0

    virtual_time.run(main())


def test_a_key_added_while_it_is_worked_on_comes_again_afterwards():
    async def main():
        queue = WorkQueue()
        queue.add("a")
        assert await queue.get() == "a"
        queue.add("a")
        assert len(queue) == 0
        queue.done("a")
        assert await queue.get() == "a"

    virtual_time.run(main())


def test_the_earlier_of_two_delays_wins():
    async def main():
        queue = WorkQueue()
        queue.add_after("a", 10)
        queue.add_after("a", 3)
        queue.add_after("a", 7)
        await queue.get()
        assert asyncio.get_running_loop().time() == 3

    virtual_time.run(main())


def test_retries_back_off_until_the_key_is_forgotten():
    async def main():
        queue = WorkQueue(Backoff(1, 60))
        assert [queue.retry("a"), queue.retry("a"), queue.retry("a")] == [1, 2, 4]
        queue.forget("a")
        assert queue.retry("a") == 1
        queue.close()

    virtual_time.run(main())


def test_a_cancelled_waiter_passes_its_wake_up_on():
    async def main():
        queue = WorkQueue()
        tasks = Tasks("test")
        first = tasks.start("first", queue.get())
        second = tasks.start("second", queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        assert await second == "a"

    virtual_time.run(main())


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=30))
def test_no_key_is_lost_and_none_is_worked_on_twice_at_once(adds):
    async def main():
        queue = WorkQueue()
        busy, handled = set(), {}

        async def worker():
            while True:
                key = await queue.get()
                assert key not in busy
                busy.add(key)
                handled[key] = asyncio.get_running_loop().time()
                await asyncio.sleep(1)
                busy.discard(key)
                queue.done(key)

        tasks = Tasks("test")
        for number in range(2):
            tasks.start(f"worker-{number}", worker())
        last = {}
        for key, pause in adds:
            await asyncio.sleep(pause)
            queue.add(key)
            last[key] = asyncio.get_running_loop().time()
        await asyncio.sleep(100)
        assert queue.idle()
        assert all(handled[key] >= moment for key, moment in last.items())
        await tasks.stop()

    virtual_time.run(main())


def test_a_delay_too_short_for_the_loop_is_a_delay():
    """uvloop counts milliseconds: what is due in less is a handle that knows no moment."""

    async def main():
        queue = WorkQueue()
        queue.add_after("a", 0.0001)
        queue.add_after("a", 0.0001)
        queue.add_after("a", 5.0)
        assert await queue.get() == "a"
        queue.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_how_long_keys_waited_and_how_many_came_is_told():
    async def story():
        waits = []
        queue = WorkQueue(waited=waits.append)
        queue.add("a")
        queue.add("a")
        await asyncio.sleep(2.0)
        queue.add("b")
        assert await queue.get() == "a"
        assert await queue.get() == "b"
        assert (waits, queue.added) == ([2.0, 0.0], 2)

    virtual_time.run(story())
