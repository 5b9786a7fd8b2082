import asyncio

from sampan.core.flag import Flag
from tests.support import virtual_time


def test_whoever_waits_goes_on_when_it_is_set_and_also_when_it_is_cleared_at_once():
    async def story():
        flag, went_on = Flag(), []

        async def wait(name):
            await flag.wait()
            went_on.append(name)

        async with asyncio.TaskGroup() as group:
            for name in "ab":
                group.create_task(wait(name))
            await asyncio.sleep(1)
            assert went_on == []
            flag.set()
            flag.clear()
        assert sorted(went_on) == ["a", "b"]
        assert not flag.is_set()

    virtual_time.run(story())


def test_nobody_waits_for_what_is_set():
    async def story():
        flag = Flag()
        flag.set()
        await flag.wait()
        assert flag.is_set()

    virtual_time.run(story())


def test_who_is_cancelled_waits_no_more():
    async def story():
        flag = Flag()
        task = asyncio.get_running_loop().create_task(flag.wait())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        flag.set()
        await flag.wait()

    virtual_time.run(story())
