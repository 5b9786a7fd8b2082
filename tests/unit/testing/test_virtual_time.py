"""testing/virtual_time.py: sleeping costs nothing, and order stays right."""

import asyncio

from sampan.core.tasks import all_of
from sampan.testing import virtual_time


def test_a_day_passes_at_once_and_in_order():
    woken = []

    async def sleeper(seconds):
        await asyncio.sleep(seconds)
        woken.append(seconds)

    async def main():
        clock = virtual_time.LoopClock(epoch=1000.0)
        await all_of([sleeper(86_400), sleeper(1), sleeper(3600)])
        return clock.now(), clock.monotonic()

    assert virtual_time.run(main()) == (87_400.0, 86_400.0)
    assert woken == [1, 3600, 86_400]
