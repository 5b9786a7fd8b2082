import asyncio

from sampan.store.memory import MemoryStore
from tests.support.manual_clock import ManualClock


def test_history_is_bounded_by_compaction():
    async def story():
        store = MemoryStore(ManualClock())
        revision = await store.create("/a", b"")
        for number in range(1000):
            revision = await store.update("/a", str(number).encode(), revision)
        await store.compact(revision)
        assert (len(store._changes), len(store._base)) == (0, 1)
        await store.close()

    asyncio.run(story())
