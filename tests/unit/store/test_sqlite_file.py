import logging
import sqlite3
import stat
import subprocess
import sys

import pytest

from sampan.store.sqlite_file import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    CannotOpen,
    DamagedFile,
    FileInUse,
    ForeignFile,
    NewerFile,
    SqliteFile,
    examine,
)
from sampan.store.sqlite_log import Row, SqliteLog


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def made(path):
    SqliteFile(path).close()


def test_a_new_file_is_for_its_owner_only_and_so_are_the_files_beside_it(path):
    file = SqliteFile(path)
    connection = file.connect()
    connection.execute("UPDATE compaction SET compacted = 2")
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    assert set(modes) >= {"store.db", "store.db-wal", "store.db-lock"}
    assert set(modes.values()) == {0o600}
    connection.close()
    file.close()


def test_a_file_that_others_could_read_is_closed_to_them(path):
    made(path)
    path.chmod(0o644)
    made(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_foreign_database_is_refused_and_not_changed(path):
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE songs (title)")
    foreign.commit()
    foreign.close()
    before = path.read_bytes()
    with pytest.raises(ForeignFile, match=r"is not a sampan store: choose another path"):
        SqliteFile(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_not_changed(path):
    path.write_text("a shopping list\n" * 100)
    before = path.read_bytes()
    with pytest.raises(ForeignFile):
        SqliteFile(path)
    assert path.read_bytes() == before


def test_a_file_of_a_newer_version_is_refused_and_not_changed(path):
    made(path)
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    before = path.read_bytes()
    with pytest.raises(NewerFile, match=r"store version 99.*use the newer sampan"):
        SqliteFile(path)
    assert path.read_bytes() == before


def test_a_second_opening_is_refused_in_the_same_process_and_the_first_goes_on(path):
    file = SqliteFile(path)
    connection = file.connect()
    with pytest.raises(FileInUse, match="already open in another process"):
        SqliteFile(path)
    connection.execute("UPDATE compaction SET compacted = 2")
    connection.close()
    file.close()
    made(path)


@pytest.mark.slow
def test_a_second_opening_is_refused_in_another_process(path):
    file = SqliteFile(path)
    code = f"""
from pathlib import Path
from sampan.store.sqlite_file import SqliteFile, FileInUse
try:
    SqliteFile(Path({str(path)!r}))
except FileInUse as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "stop that one first" in done.stdout
    file.close()


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(CannotOpen, match="is not a directory: create it first"):
        SqliteFile(tmp_path / "none" / "store.db")


def test_a_path_that_is_a_directory_is_refused(path):
    path.mkdir()
    with pytest.raises(CannotOpen):
        SqliteFile(path)


def test_the_content_is_checked_after_an_unclean_stop_only(path, caplog):
    caplog.set_level(logging.INFO, "sampan")
    made(path)
    made(path)
    assert caplog.messages == []
    file = SqliteFile(path)
    connection = file.connect()
    connection.execute("UPDATE compaction SET compacted = 2")
    left = path.with_name("store.db-wal").read_bytes()
    connection.close()
    file.close()
    path.with_name("store.db-wal").write_bytes(left)  # as a killed process leaves it
    made(path)
    assert any("not closed cleanly" in message for message in caplog.messages)


def test_a_damaged_file_is_refused(path):
    made(path)
    content = bytearray(path.read_bytes())
    content[110:] = b"\xff" * (len(content) - 110)
    path.write_bytes(content)
    path.with_name("store.db-wal").write_bytes(b"left by a crash")
    with pytest.raises(DamagedFile, match="restore it from a copy"):
        SqliteFile(path)


def test_a_file_whose_making_was_interrupted_is_made_anew(path):
    path.touch()
    file = SqliteFile(path)
    connection = file.connect()
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    connection.close()
    file.close()


def test_a_file_of_the_first_version_is_taken_over_and_its_rows_are_read(path):
    made(path)
    first = sqlite3.connect(path)
    first.executescript(
        "ALTER TABLE log DROP COLUMN checksum; PRAGMA user_version = 1;"
        "INSERT INTO log VALUES (2, '/a', 2, 0, 0, NULL, x'61')"
    )
    first.close()
    assert examine(path) == 1
    log = SqliteLog(path)
    log.commit([Row(3, "/b", 3, 0, False, None, b"b")])
    assert [entry.value for entry in log.page("/", "", 0, 3).entries] == [b"a", b"b"]
    log.close()
    assert examine(path) == SCHEMA_VERSION
    with sqlite3.connect(path) as second:
        found = second.execute("SELECT checksum FROM log ORDER BY revision").fetchall()
    second.close()
    assert found[0] == (None,)
    assert found[1] != (None,)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("value = x'62'", "revision 2 of /a is not what was written"),
        ("create_revision = 1", "revision 2 of /a is not what was written"),
        ("key = '/b'", "revision 2 of /b is not what was written"),
        ("revision = 9", "revision 9 of /a is not what was written"),
        ("deleted = 1", "revision 2 of /a is not what was written"),
    ],
)
def test_a_row_that_is_not_what_was_written_is_told_by_whoever_looks(path, change, says):
    log = SqliteLog(path)
    log.commit([Row(2, "/a", 2, 0, False, None, b"a")])
    log.close()
    with sqlite3.connect(path) as disk:
        disk.execute(f"UPDATE log SET {change}")
    disk.close()
    with pytest.raises(DamagedFile, match=says):
        examine(path)
    log = SqliteLog(path)
    with pytest.raises(DamagedFile, match=says):
        log.changes("/", 1, 9)
    if "deleted" not in change:
        with pytest.raises(DamagedFile, match=says):
            log.page("/", "", 0, 9)
    log.close()
