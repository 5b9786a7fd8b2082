import asyncio
import threading

import pytest

from sampan.core.tasks import Tasks
from sampan.runtime.own_thread import in_own_thread


def test_each_work_has_a_thread_that_ends_with_it():
    async def story():
        return [await in_own_thread("own", threading.current_thread) for _ in range(3)]

    threads = asyncio.run(story())
    assert len({id(thread) for thread in threads} | {id(threading.main_thread())}) == 4
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("failure", [OSError("no"), ValueError("a bug")])
def test_what_it_raises_is_raised(failure):
    def work():
        raise failure

    with pytest.raises(type(failure), match=str(failure)):
        asyncio.run(in_own_thread("own", work))


def test_what_nobody_waited_for_is_given_away():
    go, given = threading.Event(), []

    def work():
        go.wait(60)
        return "result"

    async def story():
        came = asyncio.Event()

        def take(value):
            given.append(value)
            came.set()

        waiting = Tasks("test").start("wait", in_own_thread("own", work, take))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert given == []
        go.set()
        await asyncio.wait_for(came.wait(), 60)

    asyncio.run(story())
    assert given == ["result"]
