"""What every store must do, sentence by sentence of sampan.store.contract. [E1]

A new implementation is one more line in STORES.
"""

import asyncio
from contextlib import nullcontext

import pytest

from sampan.core.tasks import Tasks, all_of
from sampan.store import fanout
from sampan.store.contract import (
    Change,
    Compacted,
    Entry,
    FutureRevision,
    KeyExists,
    RevisionMismatch,
    StoreClosed,
)
from sampan.store.open import open_store
from tests.support.manual_clock import ManualClock
from tests.support.parts.etcd_server import etcd_url
from tests.support.parts.hesitant_store import HesitantStore

QUEUE_CHANGES = 700

STORES = {
    "memory": lambda directory: nullcontext("memory:"),
    "hesitant": lambda directory: nullcontext("hesitant:"),
    "sqlite": lambda directory: nullcontext(f"sqlite:///{directory}/store.db"),
    "etcd": lambda directory: etcd_url(),
}
REAL_ETCD = pytest.param("etcd", marks=[pytest.mark.etcd, pytest.mark.slow])


@pytest.fixture(params=["memory", "hesitant", "sqlite", REAL_ETCD])
def url(request, tmp_path):
    with STORES[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture(params=["memory", "sqlite"])
def timed_url(request, tmp_path):
    """Of a store that goes by our clock; etcd goes by its own (see test_store_etcd.py)."""
    with STORES[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture(params=["sqlite", REAL_ETCD])
def persistent_url(request, tmp_path):
    with STORES[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture
def short_queues(monkeypatch):
    """A watcher falls behind after fewer changes than usual, so that the test is quick."""
    monkeypatch.setattr(fanout, "QUEUE_CHANGES", QUEUE_CHANGES)


async def opened_store(url, clock):
    return HesitantStore(clock) if url == "hesitant:" else await open_store(url, clock)


def on_store(url, story):
    async def main():
        clock = ManualClock()
        store = await opened_store(url, clock)
        try:
            async with asyncio.timeout(20):
                await story(store, clock)
        finally:
            await store.close()

    asyncio.run(main())


async def seen(watch, count):
    """The next `count` changes of a watch."""
    changes = []
    while len(changes) < count:
        batch = await anext(watch)
        assert batch, "a watch never delivers an empty list"
        changes += batch
    assert len(changes) == count
    return changes


async def keys_of(store, prefix="/", **how):
    return [entry.key for entry in (await store.range(prefix, **how)).entries]


# Writing.


def test_the_first_write_of_an_empty_store_is_revision_2_and_each_write_adds_one(url):
    async def story(store, clock):
        assert store.revision == 1
        assert await store.create("/a", b"1") == 2
        assert await store.create("/b", b"1") == 3
        assert await store.update("/a", b"2", 2) == 4
        assert await store.delete("/b", 3) == 5
        assert store.revision == 5

    on_store(url, story)


def test_a_failed_write_takes_no_revision(url):
    async def story(store, clock):
        await store.create("/a", b"1")
        with pytest.raises(KeyExists):
            await store.create("/a", b"2")
        with pytest.raises(RevisionMismatch):
            await store.update("/a", b"2", 99)
        assert store.revision == 2
        assert await store.get("/a") == Entry("/a", b"1", 2, 2)

    on_store(url, story)


def test_get_returns_the_newest_value_or_none(url):
    async def story(store, clock):
        assert await store.get("/a") is None
        await store.create("/a", b"one")
        await store.update("/a", b"two", 2)
        assert await store.get("/a") == Entry("/a", b"two", 2, 3)
        await store.delete("/a", 3)
        assert await store.get("/a") is None

    on_store(url, story)


def test_an_empty_value_is_a_value(url):
    async def story(store, clock):
        await store.create("/a", b"")
        assert await store.get("/a") == Entry("/a", b"", 2, 2)

    on_store(url, story)


def test_a_key_created_again_begins_a_new_incarnation(url):
    async def story(store, clock):
        await store.create("/a", b"1")
        await store.delete("/a", 2)
        assert await store.create("/a", b"2") == 4
        assert await store.get("/a") == Entry("/a", b"2", 4, 4)

    on_store(url, story)


def test_a_mismatch_says_what_is_there(url):
    async def story(store, clock):
        await store.create("/a", b"1")
        await store.update("/a", b"2", 2)
        with pytest.raises(RevisionMismatch) as update:
            await store.update("/a", b"3", 2)
        assert (update.value.key, update.value.expected) == ("/a", 2)
        assert update.value.current == Entry("/a", b"2", 2, 3)
        with pytest.raises(RevisionMismatch) as delete:
            await store.delete("/a", 2)
        assert delete.value.current == Entry("/a", b"2", 2, 3)

    on_store(url, story)


def test_a_mismatch_on_a_key_that_is_gone_says_so(url):
    async def story(store, clock):
        await store.create("/a", b"1")
        await store.delete("/a", 2)
        for write in (
            store.update("/a", b"", 2),
            store.delete("/a", 2),
            store.update("/b", b"", 0),
        ):
            with pytest.raises(RevisionMismatch) as mismatch:
                await write
            assert mismatch.value.current is None

    on_store(url, story)


def test_of_many_writers_of_one_revision_exactly_one_wins(url):
    async def story(store, clock):
        await store.create("/a", b"0")

        async def attempt(number):
            try:
                return await store.update("/a", str(number).encode(), 2)
            except RevisionMismatch as mismatch:
                return mismatch.current

        outcomes = await all_of(attempt(n) for n in range(50))
        winner = await store.get("/a")
        assert outcomes.count(3) == 1
        assert outcomes.count(winner) == 49
        assert store.revision == 3

    on_store(url, story)


def test_of_many_creators_of_one_key_exactly_one_wins(url):
    async def story(store, clock):
        async def attempt():
            try:
                return await store.create("/a", b"")
            except KeyExists:
                return None

        assert [one for one in await all_of(attempt() for _ in range(50)) if one] == [2]

    on_store(url, story)


def test_a_thousand_concurrent_creates_all_succeed_with_a_revision_each(url):
    async def story(store, clock):
        watch = store.watch("/", 1)
        keys = [f"/pods/{number:04}" for number in range(1000)]
        revisions = await all_of(store.create(key, key.encode()) for key in keys)
        assert sorted(revisions) == list(range(2, 1002))
        page = await store.range("/pods/")
        assert [(entry.key, entry.value) for entry in page.entries] == [
            (key, key.encode()) for key in keys
        ]
        assert [change.revision for change in await seen(watch, 1000)] == list(range(2, 1002))

    on_store(url, story)


def test_queued_writes_to_one_key_build_on_each_other(url):
    async def story(store, clock):
        writes = [
            store.create("/a", b"1"),
            store.update("/a", b"2", 2),
            store.delete("/a", 3),
            store.create("/a", b"4"),
        ]
        assert await all_of(writes) == [2, 3, 4, 5]
        changes = await seen(store.watch("/", 1), 4)
        assert [change.entry and change.entry.value for change in changes] == [
            b"1", b"2", None, b"4",
        ]  # fmt: skip

    on_store(url, story)


def test_a_cancelled_writer_leaves_the_write_whole_or_not_at_all(url):
    async def story(store, clock):
        tasks = Tasks("test")
        task = tasks.start("writer", store.create("/a", b"whole"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await store.create("/b", b"after")
        entry = await store.get("/a")
        assert entry is None or entry.value == b"whole"
        changes = await seen(store.watch("/", 1), store.revision - 1)
        assert [change.revision for change in changes] == list(range(2, store.revision + 1))

    on_store(url, story)


# Ranges.


def test_a_range_has_every_key_with_the_prefix_in_order_and_no_other(url):
    async def story(store, clock):
        keys = ["/pods/b", "/pods/a", "/pods0", "/pods", "/pods/a/x", "/pods/é", "/pods/\U0010ffff"]
        for key in keys:
            await store.create(key, b"")
        assert await keys_of(store, "/pods/") == sorted(k for k in keys if k.startswith("/pods/"))
        assert await keys_of(store, "") == sorted(keys)
        assert await keys_of(store, "/none/") == []

    on_store(url, story)


def test_a_limited_range_goes_on_from_its_start_and_counts_what_remains(url):
    async def story(store, clock):
        for name in "abcde":
            await store.create(f"/x/{name}", b"")
        await store.create("/y/f", b"")
        first = await store.range("/x/", limit=2)
        assert [entry.key for entry in first.entries] == ["/x/a", "/x/b"]
        assert first.remaining == 3
        second = await store.range("/x/", start="/x/b\0", limit=2, revision=first.revision)
        assert [entry.key for entry in second.entries] == ["/x/c", "/x/d"]
        assert second.remaining == 1
        last = await store.range("/x/", start="/x/e", limit=2)
        assert [entry.key for entry in last.entries] == ["/x/e"]
        assert last.remaining == 0

    on_store(url, story)


def test_a_range_at_a_revision_is_what_was_then(url):
    async def story(store, clock):
        await store.create("/a", b"1")
        await store.create("/b", b"1")
        await store.update("/a", b"2", 2)
        await store.delete("/b", 3)
        then = await store.range("/", revision=3)
        assert then.entries == [Entry("/a", b"1", 2, 2), Entry("/b", b"1", 3, 3)]
        assert then.revision == 3
        assert await keys_of(store, revision=1) == []
        now = await store.range("/")
        assert (now.entries, now.revision) == ([Entry("/a", b"2", 2, 4)], 5)

    on_store(url, story)


def test_a_range_at_a_revision_not_yet_written_is_refused(url):
    async def story(store, clock):
        with pytest.raises(FutureRevision):
            await store.range("/", revision=2)

    on_store(url, story)


def test_the_current_revision_is_that_of_every_answered_write(url):
    async def story(store, clock):
        assert await store.current_revision() == 1
        revisions = await all_of(store.create(f"/{number}", b"") for number in range(20))
        assert await store.current_revision() == max(revisions) == 21
        asked = [store.current_revision() for _ in range(20)]
        assert set(await all_of(asked)) == {21}

    on_store(url, story)


def test_an_answered_write_is_in_every_later_read(url):
    async def story(store, clock):
        async def write_and_read(number):
            key = f"/{number}"
            revision = await store.create(key, b"")
            assert await store.get(key) is not None
            assert store.revision >= revision
            assert key in await keys_of(store)

        await all_of(write_and_read(number) for number in range(50))

    on_store(url, story)


# Watches.


def test_a_watch_delivers_every_change_after_its_revision_once_in_order(url):
    async def story(store, clock):
        await store.create("/a", b"1")
        await store.create("/b", b"1")
        watch = store.watch("/", 2)
        await store.update("/a", b"2", 2)
        await store.delete("/b", 3)
        assert await seen(watch, 3) == [
            Change(3, "/b", Entry("/b", b"1", 3, 3)),
            Change(4, "/a", Entry("/a", b"2", 2, 4)),
            Change(5, "/b", None),
        ]

    on_store(url, story)


def test_a_watch_sees_only_its_prefix(url):
    async def story(store, clock):
        watch = store.watch("/pods/", 1)
        await store.create("/nodes/a", b"")
        await store.create("/pods/a", b"")
        await store.create("/pods0", b"")
        await store.create("/pods/b", b"")
        assert [change.key for change in await seen(watch, 2)] == ["/pods/a", "/pods/b"]

    on_store(url, story)


def test_whoever_got_an_answer_finds_the_change_already_with_the_watchers(url):
    async def story(store, clock):
        watch = store.watch("/", 1)
        for number in range(20):
            await store.create(f"/{number}", b"")
            # No turn of the loop may be needed for the change to arrive.
            step = anext(watch)
            with pytest.raises(StopIteration) as arrived:
                step.send(None)
            assert [change.key for change in arrived.value.value] == [f"/{number}"]

    on_store(url, story)


def test_a_watch_with_progress_says_how_far_it_is_where_nothing_concerned_it(url):
    async def story(store, clock):
        watch, plain = store.watch("/pods/", 1, progress=True), store.watch("/pods/", 1)
        assert (watch.position, plain.position) == (1, 1)
        await store.create("/nodes/a", b"")
        assert await anext(watch) == []
        assert (watch.position, plain.position) == (2, 2)
        await store.create("/pods/a", b"")
        assert (watch.position, plain.position) == (2, 2)
        await store.create("/nodes/b", b"")
        assert [change.key for change in await seen(watch, 1)] == ["/pods/a"]
        assert watch.position == 4
        await store.create("/pods/b", b"")
        assert [change.key for change in await anext(watch)] == ["/pods/b"]
        assert [change.key for change in await seen(plain, 2)] == ["/pods/a", "/pods/b"]

    on_store(url, story)


def test_a_watch_resumes_after_the_last_revision_that_it_saw(url):
    async def story(store, clock):
        for number in range(5):
            await store.create(f"/{number}", b"")
        watch = store.watch("/", 1)
        last = (await seen(watch, 5))[-1].revision
        watch.close()
        await store.create("/later", b"")
        assert [change.key for change in await seen(store.watch("/", last), 1)] == ["/later"]

    on_store(url, story)


def test_a_watch_that_waits_is_woken_by_a_write_and_ended_by_its_close(url):
    async def story(store, clock):
        watch, got = store.watch("/", 1), []

        async def read():
            async for changes in watch:
                got.extend(change.key for change in changes)

        reader = Tasks("test").start("reader", read())
        await asyncio.sleep(0)
        await store.create("/a", b"")
        await asyncio.sleep(0)
        assert got == ["/a"]
        watch.close()
        await reader

    on_store(url, story)


def test_a_watch_from_the_future_delivers_only_what_comes_after_it(url):
    async def story(store, clock):
        watch = store.watch("/", 3)
        for name in "abc":
            await store.create(f"/{name}", b"")
        assert [change.revision for change in await seen(watch, 1)] == [4]

    on_store(url, story)


def test_a_watcher_that_fell_far_behind_still_gets_everything_in_order(url, short_queues):
    async def story(store, clock):
        count = QUEUE_CHANGES + 1500
        watch = store.watch("/", 1)
        for first in range(0, count, 500):
            numbers = range(first, min(count, first + 500))
            await all_of(store.create(f"/{number}", b"") for number in numbers)
        changes = await seen(watch, count)
        assert [change.revision for change in changes] == list(range(2, count + 2))
        await store.create("/last", b"")
        assert [change.key for change in await seen(watch, 1)] == ["/last"]

    on_store(url, story)


# Compaction.


def test_what_is_older_than_the_compaction_is_gone_and_the_living_stays(url):
    async def story(store, clock):
        await store.create("/a", b"1")  # 2
        await store.update("/a", b"2", 2)  # 3
        await store.create("/b", b"1")  # 4
        await store.delete("/b", 4)  # 5
        await store.update("/a", b"3", 3)  # 6
        before = await store.range("/", revision=5)
        await store.compact(5)
        for revision in (2, 3, 4):
            with pytest.raises(Compacted) as refused:
                await store.range("/", revision=revision)
            assert refused.value.oldest == 5
        assert await store.range("/", revision=5) == before
        assert await store.get("/a") == Entry("/a", b"3", 2, 6)
        with pytest.raises(Compacted):
            await anext(store.watch("/", 3))
        assert await seen(store.watch("/", 5), 1) == [Change(6, "/a", Entry("/a", b"3", 2, 6))]
        assert await store.create("/c", b"") == 7

    on_store(url, story)


def test_compacting_the_same_or_an_older_revision_again_changes_nothing(url):
    async def story(store, clock):
        await store.create("/a", b"")
        await store.create("/b", b"")
        await store.compact(3)
        await store.compact(3)
        await store.compact(2)
        assert await keys_of(store, revision=3) == ["/a", "/b"]

    on_store(url, story)


def test_a_revision_not_yet_written_cannot_be_compacted(url):
    async def story(store, clock):
        with pytest.raises(FutureRevision):
            await store.compact(2)

    on_store(url, story)


def test_a_watcher_that_keeps_up_is_not_disturbed_by_compaction(url):
    async def story(store, clock):
        watch = store.watch("/a", 1)
        for number in range(5):
            await store.create(f"/b{number}", b"")
        await store.compact(6)
        await store.create("/a", b"")
        assert [change.key for change in await seen(watch, 1)] == ["/a"]

    on_store(url, story)


def test_a_watcher_too_far_behind_for_what_is_kept_ends_with_compacted(url, short_queues):
    async def story(store, clock):
        watch = store.watch("/", 1)
        for first in range(0, QUEUE_CHANGES + 500, 500):
            await all_of(store.create(f"/{first + n}", b"") for n in range(500))
        await store.compact(store.revision)
        with pytest.raises(Compacted):
            async for _changes in watch:
                pass

    on_store(url, story)


# Keys that expire.


def test_a_key_with_a_ttl_deletes_itself_and_watchers_hear_of_it(timed_url):
    async def story(store, clock):
        watch = store.watch("/", 2)
        await store.create("/event", b"x", ttl_seconds=60)
        await clock.advance(59)
        assert await store.get("/event") is not None
        await clock.advance(2)
        assert await seen(watch, 1) == [Change(3, "/event", None)]
        assert await store.get("/event") is None

    on_store(timed_url, story)


def test_an_update_sets_the_time_anew_or_takes_it_away(timed_url):
    async def story(store, clock):
        watch = store.watch("/", 5)
        await store.create("/longer", b"", ttl_seconds=60)
        await store.create("/for-ever", b"", ttl_seconds=60)
        await store.update("/longer", b"", 2, ttl_seconds=120)
        await store.update("/for-ever", b"", 3)
        await clock.advance(119)
        assert await keys_of(store) == ["/for-ever", "/longer"]
        await clock.advance(2)
        assert [change.key for change in await seen(watch, 1)] == ["/longer"]
        await clock.advance(1000)
        assert await keys_of(store) == ["/for-ever"]

    on_store(timed_url, story)


def test_a_shorter_ttl_that_comes_later_is_not_late(timed_url):
    async def story(store, clock):
        watch = store.watch("/", 3)
        await store.create("/long", b"", ttl_seconds=3600)
        await store.create("/short", b"", ttl_seconds=10)
        await clock.advance(11)
        assert [change.key for change in await seen(watch, 1)] == ["/short"]

    on_store(timed_url, story)


def test_a_key_deleted_and_created_again_is_not_expired_by_its_old_time(timed_url):
    async def story(store, clock):
        await store.create("/a", b"", ttl_seconds=10)
        await store.delete("/a", 2)
        await store.create("/a", b"")
        await clock.advance(100)
        await store.create("/b", b"")
        assert await keys_of(store) == ["/a", "/b"]

    on_store(timed_url, story)


def test_nothing_waits_for_time_to_pass_where_nothing_expires(timed_url):
    async def story(store, clock):
        await store.create("/a", b"")
        assert clock.sleeping() == 0
        await store.create("/b", b"", ttl_seconds=1)
        watch = store.watch("/", 3)
        await clock.advance(2)
        await seen(watch, 1)
        assert clock.sleeping() == 0

    on_store(timed_url, story)


# Closing.


def test_a_closed_store_refuses_everything(url):
    async def story(store, clock):
        await store.create("/a", b"")
        await store.close()
        await store.close()
        for call in (
            store.get("/a"), store.range("/"), store.create("/b", b""),
            store.update("/a", b"", 2), store.delete("/a", 2), store.compact(2),
            anext(store.watch("/", 2)), anext(store.watch("/", 1)),
        ):  # fmt: skip
            with pytest.raises(StoreClosed):
                await call

    on_store(url, story)


def test_closing_ends_the_watches(url):
    async def story(store, clock):
        watch = store.watch("/", 1)
        waiting = Tasks("test").start("watch", _ends_with_closed(watch))
        await asyncio.sleep(0)
        await store.close()
        assert await waiting

    on_store(url, story)


async def _ends_with_closed(watch):
    try:
        async for _changes in watch:
            pass
    except StoreClosed:
        return True
    return False


def test_writes_that_wait_at_closing_are_committed_and_answered(url):
    async def story(store, clock):
        tasks = Tasks("test")
        writes = [tasks.start("write", store.create(f"/{n}", b"")) for n in range(100)]
        await asyncio.sleep(0)
        await store.close()
        assert sorted([await write for write in writes]) == list(range(2, 102))

    on_store(url, story)


# What outlives the process.


async def reopened(url, clock, *stories):
    """Each story on a newly opened store of the same URL."""
    for story in stories:
        store = await open_store(url, clock)
        try:
            await story(store)
        finally:
            await store.close()


def test_a_reopened_store_goes_on_where_it_was(persistent_url):
    async def before(store):
        await store.create("/a", b"1")
        await store.update("/a", b"2", 2)
        await store.create("/b", b"1")
        await store.delete("/b", 4)

    async def after(store):
        assert store.revision == 5
        assert await store.get("/a") == Entry("/a", b"2", 2, 3)
        assert await store.get("/b") is None
        assert await keys_of(store, revision=4) == ["/a", "/b"]
        assert [change.revision for change in await seen(store.watch("/", 1), 4)] == [2, 3, 4, 5]
        with pytest.raises(KeyExists):
            await store.create("/a", b"")
        assert await store.create("/c", b"") == 6

    asyncio.run(reopened(persistent_url, ManualClock(), before, after))


def test_a_revision_is_not_used_again_after_its_deletion_was_compacted(persistent_url):
    async def before(store):
        await store.create("/a", b"")
        await store.delete("/a", 2)
        await store.compact(3)

    async def after(store):
        assert store.revision == 3
        with pytest.raises(Compacted):
            await store.range("/", revision=2)
        assert await store.create("/a", b"") == 4

    asyncio.run(reopened(persistent_url, ManualClock(), before, after))


def test_what_expired_while_the_store_was_closed_goes_when_it_is_opened(tmp_path):
    """etcd counts on while we are away."""
    clock, url = ManualClock(), f"sqlite:///{tmp_path}/store.db"

    async def before(store):
        await store.create("/a", b"", ttl_seconds=60)
        await store.create("/b", b"", ttl_seconds=600)

    async def after(store):
        watch = store.watch("/", 3)
        assert [change.key for change in await seen(watch, 1)] == ["/a"]
        assert await keys_of(store) == ["/b"]
        await clock.advance(541)
        assert [change.key for change in await seen(watch, 1)] == ["/b"]

    async def main():
        await reopened(url, clock, before)
        await clock.advance(60)
        await reopened(url, clock, after)

    asyncio.run(main())
