import asyncio
import logging
import os
import resource
import subprocess
import sys
import threading

import pytest

from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks, all_of
from sampan.store.contract import StoreError
from sampan.store.sqlite import open_sqlite
from tests.support.manual_clock import ManualClock


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def full_disk(tmp_path):
    """Files may not grow any more: what a full disk looks like to SQLite."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(bytes_left=0):
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, hard))

    def make_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    yield fill, make_room
    make_room()


def test_a_full_disk_fails_every_queued_write_and_the_store_goes_on_afterwards(path, full_disk):
    """[E2] What failed is not there; no revision is skipped or used twice."""
    fill, make_room = full_disk

    async def story():
        store = await open_sqlite(path, SystemClock())
        await store.create("/kept", b"")
        watch = store.watch("/", 2)
        fill()
        tasks = Tasks("test")
        writes = [tasks.start("w", store.create(f"/{n}", bytes(5000))) for n in range(50)]
        done, _ = await asyncio.wait(writes)
        make_room()
        assert {type(one.exception()) for one in done} == {StoreError}
        assert store.revision == 2
        assert (await store.range("/")).entries == [await store.get("/kept")]
        assert await store.create("/0", b"again") == 3
        assert [change.key for change in await anext(watch)] == ["/0"]
        await store.close()

    asyncio.run(story())


def test_a_key_whose_expiry_met_a_full_disk_expires_later(path, full_disk):
    fill, make_room = full_disk

    async def story():
        clock = ManualClock()
        store = await open_sqlite(path, clock)
        await store.create("/event", b"", ttl_seconds=60)
        watch = store.watch("/", 2)
        fill()
        await clock.advance(61)
        while clock.sleeping() == 0:  # until the failure has come back from the writer's thread
            await asyncio.sleep(0.001)
        make_room()
        assert await store.get("/event") is not None
        await clock.advance(11)
        assert [change.key for change in await anext(watch)] == ["/event"]
        await store.close()

    asyncio.run(story())


def test_writes_that_wait_ride_in_one_transaction(path):
    async def story():
        store = await open_sqlite(path, SystemClock())
        commits = []
        commit = store._log.commit
        store._log.commit = lambda rows: commits.append(len(rows)) or commit(rows)
        await all_of(store.create(f"/{n}", b"") for n in range(100))
        await store.close()
        assert sum(commits) == 100
        assert len(commits) <= 4, "those that come while one is written wait for the next"

    asyncio.run(story())


def test_writes_and_reads_go_on_while_the_store_is_compacted(path):
    async def story():
        store = await open_sqlite(path, SystemClock())
        revision = await store.create("/a", b"")
        for _ in range(20):
            revisions = await all_of(
                store.update("/a", b"", revision + number) for number in range(100)
            )
            revision = revisions[-1]
        compacting = Tasks("test").start("compact", store.compact(revision))
        while not compacting.done():
            revision = await store.update("/a", b"", revision)
            page = await store.range("/")
            assert [entry.revision for entry in page.entries] == [revision]
        await compacting
        await store.close()

    asyncio.run(story())


def test_a_cleanly_closed_store_is_one_file_and_leaves_no_thread(path):
    async def story():
        store = await open_sqlite(path, SystemClock())
        await store.create("/a", b"")
        await store.range("/")
        await store.close()

    asyncio.run(story())
    assert not path.with_name("store.db-wal").exists()
    assert not [one for one in threading.enumerate() if one.name.startswith("sampan-store")]


def test_a_refused_file_leaves_no_thread(path):
    path.write_text("not a store")

    async def story():
        with pytest.raises(StoreError):
            await open_sqlite(path, SystemClock())

    asyncio.run(story())
    for thread in threading.enumerate():
        if thread.name.startswith("sampan-store"):
            thread.join(5)
            assert not thread.is_alive()


CHILD = """
import asyncio, sys
from pathlib import Path
from sampan.core.clock import SystemClock
from sampan.core.tasks import all_of
from sampan.store.sqlite import open_sqlite

async def write(store, worker):
    key = f"/{worker}"
    revision, count = 0, 0
    found = await store.get(key)
    if found is not None:
        revision, count = found.revision, int(found.value[:8])
    while True:
        count += 1
        value = b"%08d" % count + bytes([count % 256]) * 3000
        if revision:
            revision = await store.update(key, value, revision)
        else:
            revision = await store.create(key, value)
        sys.stdout.write(f"{worker} {count} {revision}\\n")
        sys.stdout.flush()

async def main():
    store = await open_sqlite(Path(sys.argv[1]), SystemClock())
    await all_of(write(store, worker) for worker in range(8))

asyncio.run(main())
"""


@pytest.mark.slow
def test_every_acknowledged_write_survives_kill_9_and_none_is_half_there(path, caplog):
    """[E2]"""
    caplog.set_level(logging.INFO, "sampan")
    acknowledged = {}
    for _round in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, env=os.environ
        )
        lines = [child.stdout.readline() for _ in range(2000)]
        child.kill()
        lines += child.stdout.read().splitlines(keepends=True)
        child.stdout.close()
        child.wait()
        for line in lines:
            if line.endswith(b"\n"):
                worker, count, revision = map(int, line.split())
                acknowledged[worker] = (count, revision)
        asyncio.run(_check(path, acknowledged))


async def _check(path, acknowledged):
    store = await open_sqlite(path, SystemClock())
    newest = store.revision
    for worker, (count, revision) in acknowledged.items():
        entry = await store.get(f"/{worker}")
        stored = int(entry.value[:8])
        # One more may have been committed without having been answered.
        assert stored in (count, count + 1)
        assert entry.revision >= revision
        assert entry.value[8:] == bytes([stored % 256]) * 3000
    revisions = []
    watch = store.watch("/", 1)
    while len(revisions) < newest - 1:
        revisions += [change.revision for change in await anext(watch)]
    assert revisions == list(range(2, newest + 1))
    await store.close()
