"""The store in memory: simple enough to be obviously right, and so the oracle of the others.

Job: the contract over dicts and lists; nothing survives the process.
Invariant: `_changes[i]` has the revision `_compacted + 1 + i`: none is missing, none twice.
Invariant: what is kept besides the living keys is bounded by compaction.
Owner: whoever opened it; one event loop.
"""

from sampan.core.clock import Clock
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
    Watch,
)
from sampan.store.expiry import Expiry
from sampan.store.fanout import Fanout

EMPTY_REVISION = 1  # as etcd: the first write is 2
READ_CHANGES = 500  # at most so many per list for a watcher that reads the log


class MemoryStore:
    shared = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._living: dict[str, Entry] = {}
        self._changes: list[Change] = []
        self._compacted = EMPTY_REVISION
        self._base: dict[str, Entry] = {}  # what lived at `_compacted`
        self._fanout = Fanout(EMPTY_REVISION, self._read_log)
        self._tasks = Tasks("memory store")
        self._expiry = Expiry(clock, self._tasks, self._expire)
        self._closed = False

    @property
    def revision(self) -> int:
        return self._compacted + len(self._changes)

    async def current_revision(self) -> int:
        self._check_open()
        return self.revision

    async def get(self, key: str) -> Entry | None:
        self._check_open()
        return self._living.get(key)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        self._check_open()
        living, revision = self._at(revision), revision or self.revision
        keys = sorted(key for key in living if key.startswith(prefix) and key >= start)
        wanted = keys[:limit] if limit else keys
        return Page([living[key] for key in wanted], revision, len(keys) - len(wanted))

    async def create(self, key: str, value: bytes, *, ttl_seconds: int = 0) -> int:
        self._check_open()
        if key in self._living:
            raise KeyExists(key)
        revision = self.revision + 1
        return self._write(key, Entry(key, value, revision, revision), ttl_seconds)

    async def update(
        self, key: str, value: bytes, expected_revision: int, *, ttl_seconds: int = 0
    ) -> int:
        current = self._expect(key, expected_revision)
        entry = Entry(key, value, current.create_revision, self.revision + 1)
        return self._write(key, entry, ttl_seconds)

    async def delete(self, key: str, expected_revision: int) -> int:
        self._expect(key, expected_revision)
        return self._write(key, None, 0)

    def watch(self, prefix: str, after_revision: int, *, progress: bool = False) -> Watch:
        return self._fanout.watch(prefix, after_revision, progress)

    async def compact(self, revision: int) -> None:
        self._check_open()
        if revision > self.revision:
            raise FutureRevision(f"revision {revision} has not been written yet")
        if revision > self._compacted:
            self._base = dict(self._at(revision))
            del self._changes[: revision - self._compacted]
            self._compacted = revision

    async def close(self) -> None:
        self._closed = True
        self._fanout.close("the store is closed")
        await self._tasks.stop()

    def _write(self, key: str, entry: Entry | None, ttl_seconds: int) -> int:
        revision = self.revision + 1
        change = Change(revision, key, entry)
        self._living.pop(key, None)
        self._expiry.forget(key)
        if entry is not None:
            self._living[key] = entry
            if ttl_seconds:
                self._expiry.set(key, revision, self._clock.now() + ttl_seconds)
        self._changes.append(change)
        self._fanout.publish([change])
        return revision

    def _expect(self, key: str, revision: int) -> Entry:
        self._check_open()
        current = self._living.get(key)
        if current is None or current.revision != revision:
            raise RevisionMismatch(key, revision, current)
        return current

    def _expire(self, key: str, revision: int) -> None:
        self._expect(key, revision)
        self._write(key, None, 0)

    def _at(self, revision: int) -> dict[str, Entry]:
        """Everything that lived at `revision` (0 = now)."""
        if revision in (0, self.revision):
            return self._living
        if revision > self.revision:
            raise FutureRevision(f"revision {revision} has not been written yet")
        if revision < self._compacted:
            raise Compacted(revision, self._compacted)
        living = dict(self._base)
        for change in self._changes[: revision - self._compacted]:
            if change.entry is None:
                del living[change.key]
            else:
                living[change.key] = change.entry
        return living

    async def _read_log(self, prefix: str, after: int, upto: int) -> tuple[list[Change], int]:
        if after < self._compacted:
            raise Compacted(after, self._compacted)
        found: list[Change] = []
        for change in self._changes[after - self._compacted : upto - self._compacted]:
            if change.key.startswith(prefix):
                found.append(change)
                if len(found) == READ_CHANGES:
                    return found, change.revision
        return found, upto

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed")
