"""core/wakeup.py: one reader, woken once for all that happened before it looks again."""

import asyncio

import pytest

from sampan.core.wakeup import Wakeup
from tests.support import virtual_time


def test_who_waits_is_woken_and_a_wake_up_before_is_not_remembered():
    async def main():
        wakeup, woken = Wakeup(), []

        async def reader():
            for _ in range(2):
                await wakeup.wait()
                woken.append(asyncio.get_running_loop().time())

        wakeup.wake()
        async with asyncio.TaskGroup() as group:
            group.create_task(reader())
            await asyncio.sleep(1)
            assert woken == []
            wakeup.wake()
            wakeup.wake()
            await asyncio.sleep(1)
            assert woken == [1.0]
            wakeup.wake()
            await asyncio.sleep(1)
            assert woken == [1.0, 2.0]

    virtual_time.run(main())


def test_who_gives_up_makes_room_for_the_next():
    async def main():
        wakeup = Wakeup()
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await wakeup.wait()
        wakeup.wake()

    virtual_time.run(main())
