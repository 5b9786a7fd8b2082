import asyncio
import threading

import pytest

from sampan.core.side_thread import SideThread


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
