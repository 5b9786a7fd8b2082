"""core/holding.py: what is taken is kept or let go, whatever happens, and told once."""

import asyncio

import pytest

from sampan.core.holding import Hold, Outcome, run_to_end
from tests.support import virtual_time


class StageEvent:
    """A taker that takes its time, and remembers what it was told."""

    def __init__(self, name="", seconds=0.0):
        self.name, self.seconds, self.outcomes = name, seconds, []

    async def __call__(self, outcome):
        await asyncio.sleep(self.seconds)
        self.outcomes.append(outcome)


async def cancelled_after(seconds, work):
    task = asyncio.get_running_loop().create_task(work)
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return task


def test_takers_are_told_the_outcome_last_one_first():
    order = []

    async def main():
        async with Hold() as hold:
            hold.add(lambda outcome: order.append(("first", outcome)))
            hold.add(lambda outcome: order.append(("second", outcome)))
            hold.commit()

    virtual_time.run(main())
    assert order == [("second", Outcome.COMMITTED), ("first", Outcome.COMMITTED)]


def test_what_was_not_committed_is_released_however_the_block_ends():
    told = StageEvent()

    async def main():
        async with Hold() as hold:
            hold.add(told)

        async def fails():
            async with Hold() as hold:
                hold.add(told)
                raise ValueError("expected by this test")

        with pytest.raises(ValueError, match="expected"):
            await fails()

        async def waits():
            async with Hold() as hold:
                hold.add(told)
                await asyncio.sleep(10)

        await cancelled_after(1, waits())

    virtual_time.run(main())
    assert told.outcomes == [Outcome.RELEASED] * 3


def test_a_commit_holds_even_if_the_block_is_cancelled_after_it():
    told = StageEvent()

    async def work():
        async with Hold() as hold:
            hold.add(told)
            hold.commit()
            await asyncio.sleep(10)

    virtual_time.run(cancelled_after(1, work()))
    assert told.outcomes == [Outcome.COMMITTED]


def test_a_taker_finishes_though_it_is_cancelled_twice():
    told = StageEvent(seconds=5)

    async def work():
        async with Hold() as hold:
            hold.add(told)
            await asyncio.sleep(10)

    async def main():
        task = asyncio.get_running_loop().create_task(work())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.get_running_loop().time()

    assert virtual_time.run(main()) == 6
    assert told.outcomes == [Outcome.RELEASED]


def test_a_taker_that_fails_does_not_keep_it_from_the_others():
    told, plain = StageEvent(), []

    def fail(_):
        raise ValueError("expected by this test")

    async def waits():
        async with Hold() as hold:
            hold.add(told)
            hold.add(fail)

    def does_not_wait():
        with Hold() as hold:
            hold.add(plain.append)
            hold.add(fail)

    with pytest.raises(ValueError, match="expected"):
        virtual_time.run(waits())
    with pytest.raises(ValueError, match="expected"):
        does_not_wait()
    assert told.outcomes == plain == [Outcome.RELEASED]


def test_an_outcome_that_nobody_knows_is_told_as_such():
    told = StageEvent()

    async def main():
        async with Hold() as hold:
            hold.add(told)
            hold.doubt()

    virtual_time.run(main())
    assert told.outcomes == [Outcome.UNKNOWN]


def test_a_plain_block_holds_takers_that_do_not_wait():
    told = []
    with Hold() as hold:
        hold.add(told.append)
    with pytest.raises(AssertionError), Hold() as hold:
        hold.add(lambda _: "something to wait for")
    assert told == [Outcome.RELEASED]


def test_work_that_runs_to_its_end_gives_its_result_and_its_error():
    async def answer():
        await asyncio.sleep(0)
        await asyncio.sleep(1)
        return 42

    async def fail():
        await asyncio.sleep(1)
        raise ValueError("expected by this test")

    async def main():
        assert await run_to_end(answer()) == 42
        with pytest.raises(ValueError, match="expected"):
            await run_to_end(fail())

    virtual_time.run(main())


@pytest.mark.parametrize("at", [0, 1, 1.5, 2.5])
def test_work_is_finished_before_its_caller_is_cancelled(at):
    done = []

    async def work():
        await asyncio.sleep(0)
        await asyncio.sleep(1)
        done.append("one step")
        await asyncio.sleep(0)
        await asyncio.sleep(1)
        done.append("the other")

    async def caller():
        await run_to_end(work())
        await asyncio.sleep(1)
        done.append("never")

    virtual_time.run(cancelled_after(at, caller()))
    assert done == ["one step", "the other"]


def test_a_timeout_around_work_that_runs_to_its_end_is_a_timeout():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await run_to_end(asyncio.sleep(5))
        assert asyncio.get_running_loop().time() == 5
        await asyncio.sleep(1)  # no cancellation is left over

    virtual_time.run(main())


def test_work_whose_own_task_is_cancelled_fails_as_itself():
    async def main():
        other = asyncio.get_running_loop().create_task(asyncio.sleep(5))
        asyncio.get_running_loop().call_later(1, other.cancel)

        async def work():
            await other

        with pytest.raises(asyncio.CancelledError):
            await run_to_end(work())
        assert asyncio.current_task().cancelling() == 0

    virtual_time.run(main())
