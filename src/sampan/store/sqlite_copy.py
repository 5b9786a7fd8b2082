"""A store's file made of another one, or of values, without a store that is open.

Job: copy a file that a process may be writing to; write a new file; read keys in a copy.
Invariant: a copy has the state of one revision, whole transactions only; nothing of the original
    changes.
Invariant: who makes a file has its directory locked, and nobody else opens it meanwhile.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from sampan.store.contract import StoreError
from sampan.store.keys import prefix_end
from sampan.store.sqlite_file import SqliteFile, check_header
from sampan.store.sqlite_log import INSERT, PAGE, Row

FIRST_REVISION = 2


class NewEntry(NamedTuple):
    key: str
    value: bytes
    expires: float | None = None  # seconds since 1970


def copy_store(source: Path, target: Path) -> None:
    """Raises StoreError."""
    check_header(source)
    with (
        _failing_as(f"{source} cannot be copied"),
        _open(target) as new,
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=5.0)) as old,
    ):
        old.backup(new)


def write_store(target: Path, entries: Iterable[NewEntry]) -> None:
    """Raises StoreError."""
    rows = [
        Row(revision, entry.key, revision, 0, False, entry.expires, entry.value)
        for revision, entry in enumerate(entries, FIRST_REVISION)
    ]
    with _failing_as(f"{target} cannot be written"), _open(target) as new:
        new.execute("BEGIN IMMEDIATE")
        new.executemany(INSERT, (row.stored for row in rows))
        new.execute("COMMIT")


def living(path: Path, prefix: str) -> dict[str, bytes]:
    """By key. Raises StoreError."""
    where = {"start": prefix, "end": prefix_end(prefix), "revision": 2**62, "limit": -1}
    with _failing_as(f"{path} cannot be read"), _open(path) as file:
        return {row[0]: row[1] for row in file.execute(PAGE, where)}


def forget(path: Path, prefix: str) -> None:
    """As if nothing had ever been under the prefix. Raises StoreError."""
    with _failing_as(f"{path} cannot be written"), _open(path) as file:
        file.execute("DELETE FROM log WHERE key >= ? AND key < ?", (prefix, prefix_end(prefix)))


def has_value_like(path: Path, beginning: bytes) -> bool:
    with _failing_as(f"{path} cannot be read"), _open(path) as file:
        found = file.execute(
            "SELECT 1 FROM log WHERE substr(value, 1, ?) = ? LIMIT 1", (len(beginning), beginning)
        )
        return found.fetchone() is not None


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    file = SqliteFile(path)
    try:
        with closing(file.connect()) as connection:
            yield connection
    finally:
        file.close()


@contextmanager
def _failing_as(what: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{what}: {error}") from error
