"""The store in one SQLite file: group commit, one writer, watchers told after the commit.

Job: the event loop's side: compare-and-swap against an index of keys, queueing, answering.
Invariant: a write is answered, seen by reads and told to watchers only after its commit; watchers
    have it in their queues before the writer has its answer.
Invariant: revisions are given at queueing, in the order of the queue; a failed batch takes all
    that were queued behind it along, so that none is skipped or used twice.
Invariant: with nothing to do there is no timer, and both threads sleep.
Owner: whoever opened it; one event loop.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.store.contract import (
    Change,
    Compacted,
    Entry,
    FutureRevision,
    KeyExists,
    Page,
    RevisionMismatch,
    StoreClosed,
    StoreError,
    Watch,
)
from sampan.store.expiry import Expiry
from sampan.store.fanout import Fanout
from sampan.store.sqlite_file import refusal
from sampan.store.sqlite_log import Broken, Committed, Living, Outcome, Refused, Row, SqliteLog

BATCH_WRITES = 1024
EXPIRY_RETRY_SECONDS = 10.0
CLOSED = "the store is closed"

P = ParamSpec("P")
T = TypeVar("T")
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Current:
    """What the index knows of a living key; its value stays in the file."""

    revision: int
    create_revision: int


@dataclass(frozen=True, slots=True)
class Write:
    row: Row
    answer: asyncio.Future[int]


class SqliteStore:
    """Made by `open_sqlite`."""

    shared = False  # the file is locked

    def __init__(
        self, opened: SqliteLog, clock: Clock, writer: ThreadPoolExecutor,
        revision: int, compacted: int, living: list[Living],
    ) -> None:  # fmt: skip
        self._log, self._clock = opened, clock
        self._loop = asyncio.get_running_loop()
        self._writer = writer
        self._reader = ThreadPoolExecutor(1, "sampan-store-reader")
        self._revision, self._compacted = revision, compacted
        self._index = {item.key: Current(item.revision, item.create_revision) for item in living}
        self._ahead: dict[str, Write] = {}  # the newest queued write of each key that has one
        self._queue: list[Write] = []
        self._committing: list[Write] = []
        self._gathering = False  # a commit is about to be started
        self._batch_waiters: list[asyncio.Future[None]] = []
        self._closed: str | None = None  # why no more can be done
        self._close_task: asyncio.Task[None] | None = None
        self._fanout = Fanout(revision, self._read_log)
        self._tasks = Tasks("sqlite store")
        self._closing = Tasks("sqlite store closing")
        self._expiry = Expiry(clock, self._tasks, self._expire)
        for item in living:
            if item.expires is not None:
                self._expiry.set(item.key, item.revision, item.expires)

    @property
    def revision(self) -> int:
        return self._revision

    async def current_revision(self) -> int:
        self._check_open()
        return self.revision

    async def get(self, key: str) -> Entry | None:
        self._check_open()
        return self._entry(key)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        if revision > self._revision:
            self._check_open()
            raise FutureRevision(f"revision {revision} has not been written yet")
        while True:
            wanted = revision or self._revision
            try:
                return await self._read(self._log.page, prefix, start, limit, wanted)
            except Compacted:
                # "Now" was compacted while the read waited for its thread: now is later.
                if revision:
                    raise

    async def create(self, key: str, value: bytes, *, ttl_seconds: int = 0) -> int:
        self._check_open()
        while self._newest(key) is not None:
            if key not in self._ahead:
                raise KeyExists(key)
            await self._batch_end()
            self._check_open()
        return await self._write(key, value, None, ttl_seconds)

    async def update(
        self, key: str, value: bytes, expected_revision: int, *, ttl_seconds: int = 0
    ) -> int:
        current = await self._expect(key, expected_revision)
        return await self._write(key, value, current, ttl_seconds)

    async def delete(self, key: str, expected_revision: int) -> int:
        current = await self._expect(key, expected_revision)
        return await self._write(key, None, current, 0)

    def watch(self, prefix: str, after_revision: int, *, progress: bool = False) -> Watch:
        return self._fanout.watch(prefix, after_revision, progress)

    async def compact(self, revision: int) -> None:
        self._check_open()
        if revision > self._revision:
            raise FutureRevision(f"revision {revision} has not been written yet")
        if revision <= self._compacted:
            return
        await self._maintain(self._log.mark_compacted, revision)
        self._compacted = max(self._compacted, revision)
        while await self._maintain(self._log.sweep):
            pass  # queued writes get their turn between two steps
        while await self._maintain(self._log.shrink):
            pass

    async def close(self) -> None:
        """Commit what waits, then close; the file is whole without its write-ahead log."""
        if self._close_task is None:
            self._closed = self._closed or CLOSED
            self._close_task = self._closing.start("close", self._close())
        await asyncio.shield(self._close_task)

    # Writing.

    def _newest(self, key: str) -> Current | None:
        """The key as the next write will find it, queued writes included."""
        ahead = self._ahead.get(key)
        if ahead is None:
            return self._index.get(key)
        return _after(ahead.row)

    async def _expect(self, key: str, revision: int) -> Current:
        while True:
            self._check_open()
            newest = self._newest(key)
            if newest is not None and newest.revision == revision:
                return newest
            if key not in self._ahead:
                raise RevisionMismatch(key, revision, self._entry(key))
            # Only a write that is not committed yet stands against it: let it come true first.
            await self._batch_end()

    async def _write(
        self, key: str, value: bytes | None, replaced: Current | None, ttl_seconds: int
    ) -> int:
        key.encode()  # a key that is not text must not fail the others in its batch
        expires = self._clock.now() + ttl_seconds if ttl_seconds else None
        return await self._enqueue(key, value, replaced, expires)

    def _enqueue(
        self, key: str, value: bytes | None, replaced: Current | None, expires: float | None
    ) -> asyncio.Future[int]:
        revision = self._revision + len(self._committing) + len(self._queue) + 1
        row = Row(
            revision, key,
            replaced.create_revision if replaced else revision,
            replaced.revision if replaced else 0,
            value is None, expires, value or b"",
        )  # fmt: skip
        write = Write(row, self._loop.create_future())
        self._queue.append(write)
        self._ahead[key] = write
        if not self._gathering and not self._committing:
            # Not at once: whoever else writes in this turn of the loop rides along.
            self._gathering = True
            self._loop.call_soon(self._commit)
        return write.answer

    def _commit(self) -> None:
        self._gathering = False
        batch = self._queue[:BATCH_WRITES]
        if not batch:
            return
        del self._queue[:BATCH_WRITES]
        self._committing = batch
        rows = [write.row for write in batch]
        running = self._loop.run_in_executor(self._writer, self._log.commit, rows)
        running.add_done_callback(self._ended)

    def _ended(self, running: asyncio.Future[Outcome]) -> None:
        error = running.exception()
        outcome = running.result() if error is None else Broken(error)
        batch, self._committing = self._committing, []
        match outcome:
            case Committed():
                self._apply(batch)
            case Refused(error=why):
                log.error("store cannot write", error=why, writes=len(batch) + len(self._queue))
                self._fail(batch, StoreError(f"the store cannot write: {why}"))
            case Broken(error=why):
                log.error("store is broken", error=why, writes=len(batch) + len(self._queue))
                self._closed = f"the store's disk failed: {why}"
                self._fail(batch, StoreClosed(self._closed))
                self._fanout.close(self._closed)
        waiters, self._batch_waiters = self._batch_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        if self._queue and not self._gathering:
            self._commit()

    def _apply(self, batch: list[Write]) -> None:
        changes = []
        for write in batch:
            row = write.row
            changes.append(_change(row))
            if row.deleted:
                del self._index[row.key]
            else:
                self._index[row.key] = Current(row.revision, row.create_revision)
            if self._ahead[row.key] is write:
                del self._ahead[row.key]
            if row.expires is not None:
                self._expiry.set(row.key, row.revision, row.expires)
            else:
                self._expiry.forget(row.key)
        self._revision = batch[-1].row.revision
        self._fanout.publish(changes)
        for write in batch:
            if not write.answer.done():  # its writer may have been cancelled
                write.answer.set_result(write.row.revision)

    def _fail(self, batch: list[Write], error: StoreError) -> None:
        """Roll back to what is committed: the batch, and all that was queued on top of it."""
        failed, self._queue = [*batch, *self._queue], []
        self._ahead.clear()
        for write in failed:
            if not write.answer.done():
                write.answer.set_exception(type(error)(*error.args))

    async def _batch_end(self) -> None:
        waiter = self._loop.create_future()
        self._batch_waiters.append(waiter)
        await waiter

    def _expire(self, key: str, revision: int) -> None:
        current = self._index.get(key)
        if self._closed or current is None or current.revision != revision:
            return
        if key in self._ahead:
            self._expire_later(key, revision)  # should that write fail, this time still counts
            return
        answer = self._enqueue(key, None, current, None)
        answer.add_done_callback(lambda done: self._note_expiry(key, revision, done))

    def _expire_later(self, key: str, revision: int) -> None:
        self._expiry.set(key, revision, self._clock.now() + EXPIRY_RETRY_SECONDS)

    def _note_expiry(self, key: str, revision: int, done: asyncio.Future[int]) -> None:
        if done.exception() is not None and self._closed is None:
            self._expire_later(key, revision)

    # Reading.

    def _entry(self, key: str) -> Entry | None:
        """Read right here: one look-up by row number takes less than handing it to a thread."""
        current = self._index.get(key)
        if current is None:
            return None
        try:
            return self._log.entry(key, current.create_revision, current.revision)
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot read: {error}") from error

    async def _read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        assert not kwargs
        self._check_open()
        try:
            return await self._loop.run_in_executor(self._reader, work, *args)
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot read: {error}") from error

    async def _read_log(self, prefix: str, after: int, upto: int) -> tuple[list[Change], int]:
        return await self._read(self._log.changes, prefix, after, upto)

    # The rest.

    async def _maintain(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        assert not kwargs
        self._check_open()
        try:
            return await self._loop.run_in_executor(self._writer, work, *args)
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot be compacted: {error}") from error

    async def _close(self) -> None:
        while self._queue or self._committing:
            await self._batch_end()
        await self._tasks.stop()
        self._fanout.close(CLOSED)
        # What the reader still has to do comes first; then nobody uses any connection.
        await self._loop.run_in_executor(self._reader, lambda: None)
        self._reader.shutdown()
        try:
            await self._loop.run_in_executor(self._writer, self._log.close)
        except sqlite3.Error as error:
            log.warning("store closed without a checkpoint", error=error)
        self._writer.shutdown()

    def _check_open(self) -> None:
        if self._closed is not None:
            raise StoreClosed(self._closed)


async def open_sqlite(path: Path, clock: Clock) -> SqliteStore:
    """Raises a StoreError whose text says what to do (sqlite_file.py has them all)."""
    loop = asyncio.get_running_loop()
    writer = ThreadPoolExecutor(1, "sampan-store-writer")

    def opened() -> tuple[SqliteLog, int, int, list[Living]]:
        file = SqliteLog(path)
        try:
            return file, *file.state()
        except (sqlite3.Error, StoreError) as error:
            with suppress(sqlite3.Error):
                file.close()
            raise refusal(path, error) from error

    with ExitStack() as undo:
        undo.callback(writer.shutdown, wait=False)
        file, revision, compacted, living = await loop.run_in_executor(writer, opened)
        store = SqliteStore(file, clock, writer, revision, compacted, living)
        undo.pop_all()
        return store


def _after(row: Row) -> Current | None:
    return None if row.deleted else Current(row.revision, row.create_revision)


def _change(row: Row) -> Change:
    entry = None if row.deleted else Entry(row.key, row.value, row.create_revision, row.revision)
    return Change(row.revision, row.key, entry)
