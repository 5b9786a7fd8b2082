"""The append-only log in SQL: one row per write, values included.

Job: every statement that the SQLite store runs; blocking, called from the store's threads.
Invariant: a batch of rows is committed as a whole, durably, or not at all; the outcome says which.
Invariant: reads see one moment: they compare with the compaction revision of the same transaction.
Owner: SqliteStore. `commit`, `mark_compacted`, `sweep`, `shrink` run in its writer thread;
    `page` and `changes` in its reader thread; `entry` in the event loop's.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sampan.core.bounded import Bounded
from sampan.core.fast_dataclass import dataclass
from sampan.store.contract import Change, Compacted, Entry, Page
from sampan.store.keys import prefix_end
from sampan.store.sqlite_file import (
    DamagedFile,
    SqliteFile,
    Written,
    checksum,
    damage,
    sound_value,
)

READ_CHANGES = 500  # at most so many per list for a watcher that reads the log
SWEEP_REVISIONS = 1000  # per transaction, so that writers wait milliseconds at most
SHRINK_PAGES = 500
LISTS_REMEMBERED = 256  # of which a page is still to be read

INSERT = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_VALUE = "SELECT value, checksum FROM log WHERE revision = ?"
_COMPACTED = "SELECT compacted FROM compaction"
# SQLite takes the other columns of a group from the row that holds its max().
_NEWEST_PER_KEY = """
    SELECT key, max(revision) AS newest, create_revision, deleted, expires FROM log
    WHERE key >= :start AND (:end IS NULL OR key < :end) AND revision <= :revision GROUP BY key
"""
# The index has the keys in order: what lies behind the page is not looked at, nor anything sorted.
PAGE = f"""
    SELECT found.key, log.value, found.create_revision, found.newest, log.checksum
    FROM (SELECT * FROM ({_NEWEST_PER_KEY} ORDER BY key) WHERE NOT deleted LIMIT :limit) AS found
    LEFT JOIN log ON log.revision = found.newest
"""
_COUNT = f"SELECT count(*) FROM ({_NEWEST_PER_KEY}) WHERE NOT deleted"
_LIVING = f"""
    SELECT key, newest, create_revision, expires FROM ({_NEWEST_PER_KEY}) WHERE NOT deleted
"""
# The plus keeps SQLite from going by key: the rows are wanted in the order of the log.
_CHANGES = """
    SELECT revision, key, create_revision, deleted, value, checksum FROM log
    WHERE revision > :after AND revision <= :upto
      AND +key >= :start AND (:end IS NULL OR +key < :end)
    ORDER BY revision LIMIT :limit
"""
_SWEEP = """
    DELETE FROM log WHERE revision IN
        (SELECT previous FROM log WHERE revision > :after AND revision <= :upto AND previous > 0)
        OR (revision > :after AND revision <= :upto AND deleted)
"""


class Row(NamedTuple):
    """One write, as the table has it."""

    revision: int
    key: str
    create_revision: int
    previous: int
    deleted: bool
    expires: float | None
    value: bytes

    @property
    def stored(self) -> tuple[object, ...]:
        """For INSERT."""
        sums = (self.revision, self.key, self.create_revision, int(self.deleted), self.value)
        return *self, checksum(*sums)


class Living(NamedTuple):
    key: str
    revision: int
    create_revision: int
    expires: float | None


def _is_sound(living: Living) -> bool:
    """Of the types that were written: a flipped bit may have made others of them."""
    key, _, create_revision, expires = living
    return (
        isinstance(key, str)
        and isinstance(create_revision, int)
        and (expires is None or isinstance(expires, float))
    )


@dataclass(frozen=True, slots=True)
class Committed:
    """The batch is in the file, and stays."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing of the batch is in the file; the next one may go better."""

    error: sqlite3.Error


@dataclass(frozen=True, slots=True)
class Broken:
    """What the file holds cannot be found out any more."""

    error: BaseException


Outcome = Committed | Refused | Broken


class SqliteLog:
    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path)
        self._writer = self._file.connect()
        self._reader = self._file.connect()
        self._inline = self._file.connect()
        # (prefix, revision, start of the next page) → how many there are from there on.
        self._ahead: Bounded[tuple[str, int, str], int] = Bounded(LISTS_REMEMBERED)

    def state(self) -> tuple[int, int, list[Living]]:
        """The newest revision, the compacted one, and every living key; at opening. Raises
        DamagedFile."""
        newest = self._writer.execute("SELECT max(revision) FROM log").fetchone()[0] or 0
        compacted = (self._writer.execute(_COMPACTED).fetchone() or (None,))[0]
        everything = {"start": "", "end": None, "revision": newest}
        rows = self._writer.execute(_LIVING, everything).fetchall()
        living = [Living(*row) for row in rows]
        if not isinstance(compacted, int) or not all(map(_is_sound, living)):
            raise DamagedFile(damage(self._file.path, "what it says of its keys makes no sense"))
        # The newest row may have been a deletion that compaction removed.
        return max(newest, compacted), compacted, living

    def commit(self, rows: list[Row]) -> Outcome:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.executemany(INSERT, (row.stored for row in rows))
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            return self._outcome_after(error, rows)
        return Committed()

    def _outcome_after(self, error: sqlite3.Error, rows: list[Row]) -> Outcome:
        """A commit that failed may still have happened: only the file knows."""
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            self._writer.close()
            self._writer = self._file.connect()
            if self._writer.execute(_VALUE, (rows[-1].revision,)).fetchone() is not None:
                return Committed()
        except sqlite3.Error as second:
            return Broken(second)
        return Refused(error)

    def entry(self, key: str, create_revision: int, revision: int) -> Entry:
        """Raises DamagedFile, as all that read."""
        value, written = self._inline.execute(_VALUE, (revision,)).fetchone() or (None, None)
        return self._entry(key, value, create_revision, revision, written)

    def _entry(
        self, key: str, value: object, create_revision: int, revision: int, written: int | None
    ) -> Entry:
        row = Written(revision, key, create_revision, 0, value, written)
        return Entry(key, sound_value(self._file.path, row), create_revision, revision)

    def page(self, prefix: str, start: str, limit: int, revision: int) -> Page:
        where = {
            "start": max(prefix, start), "end": prefix_end(prefix), "revision": revision,
            "limit": limit or -1,
        }  # fmt: skip
        with self._reading(revision):
            entries = [self._entry(*row) for row in self._reader.execute(PAGE, where)]
            total = len(entries)
            if limit and total == limit:
                total = self._ahead.get((prefix, revision, start), 0)
                total = total or self._reader.execute(_COUNT, where).fetchone()[0]
        left = total - len(entries)
        if left:
            # To count what is behind each page of a list anew takes as long as all of it. At one
            # revision there is always as much.
            self._ahead[prefix, revision, entries[-1].key + "\0"] = left
        return Page(entries, revision, left)

    def changes(self, prefix: str, after: int, upto: int) -> tuple[list[Change], int]:
        where = {
            "start": prefix, "end": prefix_end(prefix), "after": after, "upto": upto,
            "limit": READ_CHANGES,
        }  # fmt: skip
        with self._reading(after):
            rows = self._reader.execute(_CHANGES, where).fetchall()
        found = [self._change(Written(*row)) for row in rows]
        return found, found[-1].revision if len(found) == READ_CHANGES else upto

    def _change(self, row: Written) -> Change:
        value, key = sound_value(self._file.path, row), row.key
        entry = None if row.deleted else Entry(key, value, row.create_revision, row.revision)
        return Change(row.revision, key, entry)

    @contextmanager
    def _reading(self, oldest_needed: int) -> Iterator[None]:
        self._reader.execute("BEGIN")
        try:
            compacted = self._reader.execute(_COMPACTED).fetchone()[0]
            if oldest_needed < compacted:
                raise Compacted(oldest_needed, compacted)
            yield
        finally:
            self._reader.execute("ROLLBACK")

    def mark_compacted(self, revision: int) -> None:
        self._writer.execute("UPDATE compaction SET compacted = max(compacted, ?)", (revision,))

    def sweep(self) -> bool:
        """Remove what some of the revisions up to the compacted one superseded, and deletions;
        False when all is done. Takes time by what was written since, not by what is there."""
        compacted: int
        swept: int
        compacted, swept = self._writer.execute("SELECT * FROM compaction").fetchone()
        upto = min(compacted, swept + SWEEP_REVISIONS)
        if upto == swept:
            return False
        with self._transaction():
            self._writer.execute(_SWEEP, {"after": swept, "upto": upto})
            self._writer.execute("UPDATE compaction SET swept = ?", (upto,))
        return upto < compacted

    def shrink(self) -> bool:
        """Give pages back to the file system while more than a quarter of the file is free (the
        rest is used again); False when there is no more to give."""
        free = self._writer.execute("PRAGMA freelist_count").fetchone()[0]
        pages = self._writer.execute("PRAGMA page_count").fetchone()[0]
        spare = min(SHRINK_PAGES, free - pages // 4)
        if spare <= 0:
            return False
        self._writer.execute(f"PRAGMA incremental_vacuum({spare})").fetchall()
        return True

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def close(self) -> None:
        """Everything goes from the write-ahead log into the file itself; an I/O error there
        is not a loss, for the log stays and is read at the next opening."""
        try:
            self._reader.close()
            self._inline.close()
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._writer.close()
            self._file.close()
