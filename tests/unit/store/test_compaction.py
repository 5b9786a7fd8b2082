from sampan.core.tasks import Tasks
from sampan.store.compaction import keep_compacted
from sampan.store.contract import StoreError
from sampan.store.memory import MemoryStore
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


class Recorded(MemoryStore):
    """The memory store, and what was asked of it."""

    def __init__(self, clock, failures=0):
        super().__init__(clock)
        self.compactions, self.failures = [], failures

    async def compact(self, revision):
        self.compactions.append(revision)
        if self.failures:
            self.failures -= 1
            raise StoreError("disk full")
        await super().compact(revision)


def with_store(story, failures=0):
    async def main():
        clock = LoopClock()
        store = Recorded(clock, failures)
        tasks = Tasks("test")
        tasks.start("compaction", keep_compacted(store, clock))
        await story(store, clock)
        await tasks.stop()
        await store.close()

    virtual_time.run(main())


def test_what_is_older_than_five_minutes_is_forgotten_every_five_minutes():
    async def story(store, clock):
        await clock.sleep(1)
        await store.create("/a", b"")
        await clock.sleep(300)
        assert store.compactions == [1]  # the revision of five minutes before
        await store.create("/b", b"")
        await clock.sleep(300)
        assert store.compactions == [1, 2]
        await clock.sleep(300)
        assert store.compactions == [1, 2, 3]

    with_store(story)


def test_an_idle_store_is_left_alone():
    async def story(store, clock):
        await store.create("/a", b"")
        await clock.sleep(100_000)
        assert len(store.compactions) <= 2

    with_store(story)


def test_a_failed_compaction_is_tried_again_in_the_next_round():
    async def story(store, clock):
        await store.create("/a", b"")
        await clock.sleep(1000)
        assert store.compactions[-1] == 2
        assert len(store.compactions) == 3

    with_store(story, failures=2)
