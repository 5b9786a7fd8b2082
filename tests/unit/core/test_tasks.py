"""core/tasks.py: every task has an owner, and ends with it."""

import asyncio
import gc
import weakref

import pytest

from sampan.core.tasks import (
    PART,
    PATIENCE_SECONDS,
    Tasks,
    ahead,
    all_of,
    finish,
    give_way,
    isolated,
)
from tests.support import virtual_time


def test_one_of_many_that_fails_stops_none_of_the_others(caplog):
    heard = []

    def fails(word):
        raise ValueError(word)

    assert not isolated("handler failed", (heard.append,), "first")
    assert list(isolated("handler failed", (heard.append, fails, heard.append), "second")) == [
        fails
    ]
    assert heard == ["first", "second", "second"]
    assert "handler failed" in caplog.text


def test_stop_cancels_every_task_and_waits_for_its_clean_up():
    ended = []

    async def forever(name):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            ended.append(name)

    async def main():
        tasks = Tasks("test")
        for name in "ab":
            tasks.start(name, forever(name))
        await asyncio.sleep(0)
        await tasks.stop()
        assert sorted(ended) == ["a", "b"]
        assert len(tasks) == 0

    virtual_time.run(main())


def test_stop_ends_tasks_in_the_order_of_their_start():
    ended = []

    async def forever(number):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    async def main():
        tasks = Tasks("test")
        for number in range(100):
            tasks.start(str(number), forever(number))
        await asyncio.sleep(0)
        await tasks.stop()
        assert ended == [*range(100)]

    virtual_time.run(main())


def test_a_failing_task_leaves_the_others_alone():
    async def fail():
        raise ValueError("expected by this test")

    async def main():
        tasks = Tasks("test")
        failed = tasks.start("fails", fail())
        other = tasks.start("goes on", asyncio.sleep(5, "fine"))
        assert await other == "fine"
        assert isinstance(failed.exception(), ValueError)

    virtual_time.run(main())


def test_a_supervised_task_runs_again_after_a_failure():
    runs = []

    async def work():
        runs.append(asyncio.get_running_loop().time())
        if len(runs) < 3:
            raise RuntimeError("expected by this test")

    async def main():
        tasks = Tasks("test")
        await tasks.supervise("flaky", work)
        assert runs == pytest.approx([0, 0.1, 0.3])

    virtual_time.run(main())


def test_nothing_is_started_after_stop():
    async def main():
        tasks = Tasks("test")
        await tasks.stop()
        with pytest.raises(RuntimeError, match="is stopping"):
            tasks.start("late", asyncio.sleep(0))

    virtual_time.run(main())


def test_all_of_gives_results_in_order():
    async def later(seconds):
        await asyncio.sleep(seconds)
        return seconds

    assert virtual_time.run(all_of([later(3), later(1), later(2)])) == [3, 1, 2]


def test_all_of_cancels_the_rest_when_one_fails():
    cancelled = []

    async def waits():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def fails():
        await asyncio.sleep(1)
        raise KeyError("x")

    with pytest.raises(KeyError):
        virtual_time.run(all_of([waits(), fails()]))
    assert cancelled == [True]


def test_all_of_raises_the_first_of_several_failures_and_forgets_none(caplog):
    async def fails(error):
        raise error

    with pytest.raises(KeyError):
        virtual_time.run(all_of([fails(KeyError("a")), fails(ValueError("b"))]))
    assert "never retrieved" not in caplog.text


def test_all_of_forgets_no_failure_where_it_is_cut_off_itself(caplog):
    async def fails():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise KeyError from None

    async def main():
        waiting = Tasks("test").start("all", all_of(fails() for _ in range(3)))
        await asyncio.sleep(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    virtual_time.run(main())
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_who_is_cancelled_waits_for_what_was_begun():
    async def main():
        done = []

        async def call():
            await asyncio.sleep(3)
            done.append("done")

        caller = asyncio.get_running_loop().create_task(finish(call()))
        await asyncio.sleep(1)
        caller.cancel()
        await asyncio.sleep(1)
        assert not caller.done()
        await asyncio.wait([caller])
        assert caller.cancelled()
        assert done == ["done"]

    virtual_time.run(main())


def test_patience_ends_with_a_second_cancellation_which_stopping_brings():
    async def main():
        loop = asyncio.get_running_loop()
        caller = loop.create_task(finish(asyncio.sleep(3600)))
        for seconds in (1, 4):
            loop.call_later(seconds, caller.cancel)
        await asyncio.wait([caller])
        assert caller.cancelled()
        assert loop.time() == 4
        tasks = Tasks("test")
        tasks.start("patient", finish(asyncio.sleep(3600)))
        await asyncio.sleep(1)
        await tasks.stop()
        assert loop.time() == 5 + PATIENCE_SECONDS

    virtual_time.run(main())


def test_a_result_and_a_failure_come_through():
    async def fail():
        raise ValueError("expected by this test")

    async def main():
        assert await finish(asyncio.sleep(1, "fine")) == "fine"
        with pytest.raises(ValueError, match="expected"):
            await finish(fail())

    virtual_time.run(main())


def test_what_is_begun_ahead_is_waited_for_by_who_needs_it_and_cut_off_otherwise():
    async def work(seconds):
        await asyncio.sleep(seconds)
        return seconds

    async def main():
        loop = asyncio.get_running_loop()
        async with ahead({"soon": work(1), "late": work(2), "never": work(3600)}) as begun:
            await asyncio.sleep(1)
            assert [await begun["soon"], await begun["late"]] == [1, 2]
            assert loop.time() == 2
        assert loop.time() == 2


def test_of_all_who_give_way_one_goes_on_in_each_turn():
    seen = []

    async def main():
        loop, turn, tasks = asyncio.get_running_loop(), 0, Tasks("test")

        def next_turn():
            nonlocal turn
            turn += 1
            loop.call_soon(next_turn)

        async def long_work(who):
            for _ in range(3):
                await give_way()
                seen.append((who, turn))

        next_turn()
        await asyncio.wait([tasks.start(who, long_work(who)) for who in "abc"])

    asyncio.run(main())
    assert [who for who, _ in seen] == list("abcabcabc")
    assert len({turn for _, turn in seen}) == len(seen)


def test_who_gives_way_and_is_cancelled_holds_nobody_up():
    went = []

    async def work(who):
        await give_way()
        went.append(who)

    async def main():
        tasks = Tasks("test")
        first, second, third = (tasks.start(who, work(who)) for who in "abc")
        await asyncio.sleep(0)
        first.cancel()
        second.cancel()
        async with asyncio.timeout(60):
            await third

    asyncio.run(main())
    assert went == ["c"]


def test_many_are_begun_in_parts_and_their_results_are_in_order():
    running = []

    async def work(number):
        running.append(number)
        await asyncio.sleep(1)
        return number

    async def main():
        whole = all_of(work(number) for number in range(10 * PART))
        waiting = Tasks("test").start("all", whole)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(running) <= PART
        assert await waiting == list(range(10 * PART))

    virtual_time.run(main())


def test_a_failure_of_what_was_begun_ahead_is_not_lost():
    async def fail():
        raise ValueError("expected by this test")

    async def main():
        with pytest.raises(ValueError, match="expected"):
            async with ahead({"one": fail()}):
                await asyncio.sleep(1)
        with pytest.raises(ValueError, match="expected"):
            async with ahead({"one": fail()}) as begun:
                await begun["one"]

    virtual_time.run(main())


def test_who_fails_among_many_ends_those_that_have_begun_and_begins_no_more():
    begun = []

    async def work(number):
        begun.append(number)
        if number == 3:
            raise ValueError("three")
        await asyncio.Event().wait()

    async def main():
        with pytest.raises(ValueError, match="three"):
            await all_of(work(number) for number in range(4))

    asyncio.run(main())
    assert begun == [0, 1, 2, 3]


class Heavy:
    """What somebody's task was about."""


def left_of(story):
    """How much of what it was about is still there when it is over, and nobody looks for cycles."""
    about = []

    def heavy():
        made = Heavy()
        about.append(weakref.ref(made))
        return made

    async def main():
        await story(heavy)
        await asyncio.sleep(0)

    gc.disable()
    try:
        virtual_time.run(main())
        return sum(each() is not None for each in about)
    finally:
        gc.enable()


async def fails(about):
    raise ValueError("no")


async def waits(about):
    await asyncio.Event().wait()


def test_of_all_that_has_failed_nothing_stays_without_a_collector():
    async def story(heavy):
        for _ in range(3):
            with pytest.raises(ValueError, match="no"):
                await all_of(work(heavy()) for work in (waits, fails, fails))

    assert left_of(story) == 0


def test_of_a_task_that_is_stopped_nothing_stays_though_it_knows_who_has_it():
    async def story(heavy):
        class Owner:
            def __init__(self):
                self.about, self.tasks = heavy(), Tasks("owner")
                self.running = self.tasks.supervise("work", self.work)

            async def work(self):
                await waits(self)

        one, another = Owner(), Owner()
        await asyncio.sleep(1)
        await one.tasks.stop()
        another.running.cancel()
        await asyncio.sleep(1)

    assert left_of(story) == 0
