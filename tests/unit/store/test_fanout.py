import asyncio

import pytest

from sampan.store import fanout as subject
from sampan.store.contract import Change, Entry, StoreClosed
from sampan.store.fanout import QUEUE_BYTES, QUEUE_CHANGES, Fanout
from tests.support import virtual_time


def written(revision, key="/a", value=b""):
    return Change(revision, key, Entry(key, value, revision, revision))


class Log:
    """Everything that was published, and how often it was read."""

    def __init__(self):
        self.changes, self.reads = [], 0
        self.fanout = Fanout(1, self.read)

    def publish(self, changes):
        self.changes += changes
        self.fanout.publish(changes)

    async def read(self, prefix, after, upto):
        self.reads += 1
        found = [c for c in self.changes if after < c.revision <= upto and c.key.startswith(prefix)]
        await asyncio.sleep(0)
        return found[:100], found[99].revision if len(found) > 100 else upto


def test_a_watcher_that_keeps_up_never_reads_the_log():
    async def story():
        log = Log()
        watch = log.fanout.watch("/", 1)
        for revision in range(2, 50):
            log.publish([written(revision)])
            assert [change.revision for change in await anext(watch)] == [revision]
        assert log.reads == 0

    virtual_time.run(story())


def test_a_queue_is_bounded_by_count_and_by_bytes():
    async def story():
        log = Log()
        many, big = log.fanout.watch("/", 1), log.fanout.watch("/big", 1)
        for revision in range(2, QUEUE_CHANGES + 100):
            log.publish([written(revision)])
        assert len(await anext(many)) == QUEUE_CHANGES
        value = bytes(QUEUE_BYTES // 4)
        first = log.fanout.revision + 1
        log.publish([written(first + number, "/big", value) for number in range(10)])
        assert len(await anext(big)) == 4
        rest = await anext(big)
        assert [change.revision for change in rest] == [first + number for number in range(4, 10)]

    virtual_time.run(story())


def test_changes_published_while_a_watcher_reads_the_log_are_neither_lost_nor_doubled():
    async def story():
        log = Log()
        log.publish([written(revision) for revision in range(2, 300)])
        watch, got = log.fanout.watch("/", 1), []
        while len(got) < 398:
            if len(got) < 100 + log.reads:
                log.publish([written(log.fanout.revision + 1)])
            if log.fanout.revision < 399 and log.reads > 2:
                log.publish([written(r) for r in range(log.fanout.revision + 1, 400)])
            got += [change.revision for change in await anext(watch)]
        assert got == list(range(2, 400))

    virtual_time.run(story())


def test_a_closed_watch_is_forgotten_and_ends():
    async def story():
        log = Log()
        watch = log.fanout.watch("/", 1)
        log.publish([written(2)])
        assert len(log.fanout) == 1
        watch.close()
        watch.close()
        assert len(log.fanout) == 0
        with pytest.raises(StopAsyncIteration):
            await anext(watch)

    virtual_time.run(story())


def test_what_was_queued_is_delivered_before_the_end_of_the_store():
    async def story():
        log = Log()
        watch = log.fanout.watch("/", 1)
        log.publish([written(2)])
        log.fanout.close("over")
        assert [change.revision for change in await anext(watch)] == [2]
        with pytest.raises(StoreClosed, match="over"):
            await anext(watch)

    virtual_time.run(story())


def test_a_gap_in_what_is_published_is_a_bug():
    with pytest.raises(AssertionError):
        subject.Fanout(1, Log().read).publish([written(3)])


def test_what_one_revision_changed_is_never_divided_between_queue_and_log():
    async def story():
        log = Log()
        watch = log.fanout.watch("/", 1)
        for revision in range(2, QUEUE_CHANGES + 1):
            log.publish([written(revision)])
        together = [written(QUEUE_CHANGES + 1, f"/{number}") for number in range(5)]
        log.changes += together
        log.fanout.advance(together, QUEUE_CHANGES + 1)
        log.publish([written(QUEUE_CHANGES + 2)])
        first = await anext(watch)
        assert first[-5:] == together
        assert [change.revision for change in await anext(watch)] == [QUEUE_CHANGES + 2]

    virtual_time.run(story())


def test_after_a_gap_every_watcher_reads_the_log_from_where_it_was():
    async def story():
        log = Log()
        idle, queued = log.fanout.watch("/idle", 1), log.fanout.watch("/", 1)
        log.publish([written(2)])
        log.changes += [written(3), written(4, "/idle")]
        log.fanout.skip(4)
        assert [change.revision for change in await anext(queued)] == [2]
        assert [change.revision for change in await anext(queued)] == [3, 4]
        assert [change.revision for change in await anext(idle)] == [4]
        log.publish([written(5, "/idle")])
        assert [change.revision for change in await anext(idle)] == [5]

    virtual_time.run(story())
