"""The SQLite file: its format, its integrity, and the lock that one process holds.

Job: open or make a store's file, or refuse it with one sentence that says what to do.
Invariant: a file that is not ours, or is of a newer sampan, is not changed by a single byte.
Invariant: at most one process has the file open; the lock dies with the process.
Invariant: after an unclean stop, and only then, the file is checked before it is used.
Invariant: each row has a checksum of what was written: a bit that the disk changed is found by
    whoever reads it. (Rows of the first version have none until they are written again.)
"""

import os
import sqlite3
import zlib
from pathlib import Path
from typing import NamedTuple

from sampan.core.log import get_logger
from sampan.store.contract import StoreError

APPLICATION_ID = 0x53414D50  # "SAMP" in the file's header
SCHEMA_VERSION = 2
EXAMINE_SECONDS = 5.0
_MAGIC = b"SQLite format 3\0"

_SCHEMA = """
CREATE TABLE log (
    revision        INTEGER PRIMARY KEY,
    key             TEXT    NOT NULL,
    create_revision INTEGER NOT NULL,
    previous        INTEGER NOT NULL, -- the revision that this one replaces; 0 for a creation
    deleted         INTEGER NOT NULL,
    expires         REAL,             -- seconds since 1970; NULL = never
    value           BLOB    NOT NULL,
    checksum        INTEGER           -- of the row; NULL: of a file that had none
);
-- Everything but the value: the index of keys is loaded without reading a single value.
CREATE INDEX log_by_key ON log (key, revision, create_revision, deleted, expires);
CREATE TABLE compaction (
    compacted INTEGER NOT NULL, -- nothing before this revision can be read
    swept     INTEGER NOT NULL  -- up to this revision the superseded rows are gone
);
INSERT INTO compaction VALUES (1, 1);
"""

_ROWS = "SELECT revision, key, create_revision, deleted, value, checksum FROM log"

log = get_logger(__name__)


class ForeignFile(StoreError):
    """The file was not written by sampan."""


class NewerFile(StoreError):
    """The file was written by a newer sampan."""


class FileInUse(StoreError):
    """Another process has the store open."""


class DamagedFile(StoreError):
    """The file's content is broken."""


class CannotOpen(StoreError):
    """The operating system does not let us."""


class SqliteFile:
    """An opened, locked and checked file, from which connections are made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _lock_error(path)
        try:
            self._prepare()
        except (OSError, sqlite3.Error, StoreError) as error:
            self._lock.close()
            raise refusal(path, error) from error

    def connect(self) -> sqlite3.Connection:
        connection = _connect(self.path)
        # An answered write must survive power loss; FULL syncs the log at every commit.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA journal_size_limit = 16777216")
        return connection

    def close(self) -> None:
        """After the last connection was closed."""
        self._lock.close()

    def _prepare(self) -> None:
        stopped_uncleanly = _size(_wal(self.path)) > 0
        _make_private(self.path)
        check_header(self.path)
        connection = _connect(self.path)
        try:
            if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
                _create_schema(connection)
            else:
                if stopped_uncleanly:
                    log.info("store was not closed cleanly, checking it", path=self.path)
                    _check_content(self.path, connection)
                _add_checksums(connection)
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    # Each connection is used by one thread at a time, but not by the one that made it.
    return sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _lock_error(path: Path) -> sqlite3.Connection:
    """SQLite's own exclusive lock on an empty file beside the store: portable, and safe in one
    process too, where a lock on the store's file would be lost with any other close of it."""
    beside = path.with_name(path.name + "-lock")
    if not path.parent.is_dir():
        raise CannotOpen(f"{path.parent} is not a directory: create it first")
    try:
        _make_private(beside)
        lock = sqlite3.connect(beside, timeout=0, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise CannotOpen(f"{beside} cannot be written ({error}): check its permissions") from error
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise CannotOpen(f"{beside} cannot be locked ({error})") from error
        message = f"{path} is already open in another process: stop that one first"
        raise FileInUse(message) from error
    return lock


def _make_private(path: Path) -> None:
    """The file holds secrets: it is for its owner only, from its first moment on."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)


def _create_schema(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only possible before the first table
    # One transaction with the header: a crash here leaves an empty file or a whole one.
    connection.executescript(
        f"BEGIN; {_SCHEMA} PRAGMA application_id = {APPLICATION_ID};"
        f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    )


def _add_checksums(connection: sqlite3.Connection) -> None:
    if _version(connection) < SCHEMA_VERSION:
        connection.executescript(
            "BEGIN; ALTER TABLE log ADD COLUMN checksum INTEGER;"
            f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


class Written(NamedTuple):
    """What a row says, as a read finds it: a flipped bit may have made another type of anything."""

    revision: int
    key: str
    create_revision: int
    deleted: int
    value: object
    checksum: int | None


def checksum(revision: int, key: str, create_revision: int, deleted: int, value: bytes) -> int:
    """Of all that a read answers with."""
    return zlib.crc32(value, zlib.crc32(f"{revision} {create_revision} {deleted} {key}".encode()))


def sound_value(path: Path, row: Written) -> bytes:
    """No value is that of a row that is not there. Raises DamagedFile."""
    value, said = row.value, (row.revision, row.key, row.create_revision, row.deleted)
    if isinstance(value, bytes) and row.checksum in (None, checksum(*said, value)):
        return value
    what = "missing" if value is None else "not what was written"
    raise DamagedFile(damage(path, f"revision {row.revision} of {row.key} is {what}"))


def check_header(path: Path) -> None:
    """By its bytes: merely opening a foreign file with SQLite could change it."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return
    version, application_id = int.from_bytes(header[60:64]), int.from_bytes(header[68:72])
    if not header.startswith(_MAGIC) or application_id != APPLICATION_ID:
        raise ForeignFile(f"{path} is not a sampan store: choose another path")
    if version > SCHEMA_VERSION:
        raise NewerFile(
            f"{path} has store version {version}, this sampan knows {SCHEMA_VERSION}: "
            "use the newer sampan that wrote it"
        )


def examine(path: Path) -> int:
    """The version of the store in a file that is not opened for work; raises as opening would."""
    check_header(path)
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=EXAMINE_SECONDS)
        try:
            _check_content(path, connection, "integrity_check")
            if _version(connection) >= SCHEMA_VERSION:
                for row in connection.execute(_ROWS):
                    sound_value(path, Written(*row))
            return _version(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise DamagedFile(damage(path, str(error))) from error


def _check_content(path: Path, connection: sqlite3.Connection, check: str = "quick_check") -> None:
    """The quick one does not compare rows with the index of keys: a start should not take long."""
    found = connection.execute(f"PRAGMA {check}(1)").fetchone()[0]
    if found != "ok":
        raise DamagedFile(damage(path, found))


def refusal(path: Path, error: Exception) -> StoreError:
    if isinstance(error, StoreError):
        return error
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return DamagedFile(damage(path, str(error)))
        case _:
            return CannotOpen(f"{path} cannot be opened ({error}): check disk and permissions")


def damage(path: Path, what: str) -> str:
    return f"{path} is damaged ({what}): restore it from a copy, or move it away to begin anew"
