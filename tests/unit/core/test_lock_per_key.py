import asyncio

from sampan.core.lock_per_key import LockPerKey
from sampan.core.tasks import all_of
from tests.support import virtual_time


def test_one_holder_per_key_and_nothing_is_kept_afterwards():
    locks, holders, most = LockPerKey(), [], []

    async def hold(key):
        async with locks.held(key):
            holders.append(key)
            most.append(holders.count(key))
            await asyncio.sleep(1.0)
            holders.remove(key)

    async def story():
        loop = asyncio.get_running_loop()
        began = loop.time()
        await all_of([hold("a"), hold("a"), hold("a"), hold("b")])
        return loop.time() - began

    assert virtual_time.run(story()) == 3.0
    assert max(most) == 1
    assert len(locks) == 0
