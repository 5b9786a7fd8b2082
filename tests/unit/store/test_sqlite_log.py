import sqlite3

import pytest

from sampan.store.sqlite_file import DamagedFile
from sampan.store.sqlite_log import PAGE, Broken, Committed, Refused, Row, SqliteLog


@pytest.fixture
def log(tmp_path):
    log = SqliteLog(tmp_path / "store.db")
    yield log
    log.close()


def created(revision, key, value=b"value"):
    return Row(revision, key, revision, 0, False, None, value)


def updated(revision, key, create_revision, previous, value=b"value"):
    return Row(revision, key, create_revision, previous, False, None, value)


def deleted(revision, key, create_revision, previous):
    return Row(revision, key, create_revision, previous, True, None, b"")


def revisions(log):
    return [row[0] for row in log._writer.execute("SELECT revision FROM log ORDER BY revision")]


def test_a_batch_is_committed_whole_and_in_order(log):
    assert log.commit([created(2, "/a", b"1"), created(3, "/b", b"1")]) == Committed()
    assert log.commit(
        [updated(4, "/a", 2, 2, b"2"), updated(5, "/a", 2, 4), deleted(6, "/b", 3, 3)]
    ) == Committed()  # fmt: skip
    changes, reached = log.changes("/", 3, 6)
    assert reached == 6
    assert [(change.key, change.entry and change.entry.value) for change in changes] == [
        ("/a", b"2"), ("/a", b"value"), ("/b", None),
    ]  # fmt: skip


def test_a_refused_batch_leaves_nothing_behind_and_the_next_one_works(log):
    log.commit([created(2, "/a")])
    outcome = log.commit([created(3, "/b"), created(2, "/c"), created(4, "/d")])
    assert isinstance(outcome, Refused)
    assert revisions(log) == [2]
    assert isinstance(log.commit([created(3, "/b")]), Committed)


def test_a_commit_that_failed_but_happened_counts_as_committed(log):
    """Only the file can say; here the batch is already in it."""
    log.commit([created(2, "/a", b"1")])
    batch = [updated(3, "/a", 2, 2)]
    log.commit(batch)
    assert log._outcome_after(sqlite3.OperationalError("disk I/O error"), batch) == Committed()


def test_a_file_that_cannot_be_asked_any_more_is_broken(tmp_path):
    path = tmp_path / "store.db"
    log = SqliteLog(path)
    log.commit([created(2, "/a")])
    for file in tmp_path.iterdir():
        file.unlink()
    path.mkdir()
    log._writer.close()
    assert isinstance(log.commit([created(3, "/b")]), Broken)
    with pytest.raises(sqlite3.ProgrammingError):  # the writer was closed above; the rest is now
        log.close()


def test_a_sweep_takes_what_was_superseded_and_the_deletions_only(log):
    log.commit(
        [
            created(2, "/a"), updated(3, "/a", 2, 2), created(4, "/b"), deleted(5, "/b", 4, 4),
            created(6, "/b"), updated(7, "/a", 2, 3), created(8, "/c"), deleted(9, "/c", 8, 8),
        ]
    )  # fmt: skip
    log.mark_compacted(6)
    while log.sweep():
        pass
    assert revisions(log) == [3, 6, 7, 8, 9]
    log.mark_compacted(9)
    while log.sweep():
        pass
    assert revisions(log) == [6, 7]


def test_an_interrupted_sweep_is_finished_by_the_next(log):
    rows = [created(2, "/a")] + [updated(r, "/a", 2, r - 1) for r in range(3, 3003)]
    log.commit(rows)
    log.mark_compacted(3002)
    assert log.sweep()
    assert len(revisions(log)) > 1
    while log.sweep():
        pass
    assert revisions(log) == [3002]


@pytest.mark.slow
def test_rewriting_the_same_keys_for_ever_does_not_grow_the_file(log):
    sizes, revision = [], 1
    newest = {}
    for _round in range(6):
        for _batch in range(4):
            rows = []
            for number in range(100):
                revision += 1
                key = f"/{number}"
                create_revision, previous = newest.get(key, (revision, 0))
                rows.append(updated(revision, key, create_revision, previous, bytes(2000)))
                newest[key] = (create_revision, revision)
            log.commit(rows)
        log.mark_compacted(revision)
        while log.sweep():
            pass
        while log.shrink():
            pass
        sizes.append(log._writer.execute("PRAGMA page_count").fetchone()[0])
    assert max(sizes[3:]) <= max(sizes[:3])


@pytest.mark.slow
def test_deleting_nearly_everything_gives_the_space_back(log):
    log.commit([created(2 + n, f"/{n}", bytes(3000)) for n in range(1000)])
    full = log._writer.execute("PRAGMA page_count").fetchone()[0]
    log.commit([deleted(1002 + n, f"/{n}", 2 + n, 2 + n) for n in range(1000)])
    log.mark_compacted(2001)
    while log.sweep():
        pass
    while log.shrink():
        pass
    assert log._writer.execute("PRAGMA page_count").fetchone()[0] < full / 10


def test_what_is_behind_the_pages_of_one_list_is_counted_once(log):
    log.commit([created(number + 2, f"/a/{number:03d}") for number in range(100)])
    counts = []
    log._reader.set_trace_callback(lambda text: "count(*)" in text and counts.append(text))

    def read(revision):
        start, found, left = "", [], []
        while True:
            page = log.page("/a/", start, 7, revision)
            found += [entry.key for entry in page.entries]
            left.append(page.remaining)
            if not page.remaining:
                return found, left
            start = page.entries[-1].key + "\0"

    found, left = read(101)
    assert found == [f"/a/{number:03d}" for number in range(100)]
    assert left == [93 - 7 * number for number in range(14)] + [0]
    assert len(counts) == 1
    log.commit([created(102, "/a/0305")])
    assert read(101) == (found, left), "at an old revision there is still as much"
    assert len(counts) == 2
    assert len(read(102)[0]) == 101


def test_a_page_is_read_in_order_without_sorting_what_lies_behind_it(log):
    where = {"start": "/a/", "end": "/a0", "revision": 9, "limit": 2}
    plan = [row[3] for row in log._reader.execute(f"EXPLAIN QUERY PLAN {PAGE}", where)]
    assert not [step for step in plan if "TEMP B-TREE" in step or "MATERIALIZE" in step], plan
    log.commit([created(number + 2, f"/a/{9 - number}") for number in range(8)])
    log.commit([deleted(10, "/a/2", 9, 9)])
    page = log.page("/a/", "", 3, 10)
    assert [entry.key for entry in page.entries] == ["/a/3", "/a/4", "/a/5"]
    assert page.remaining == 4


def test_lists_that_nobody_reads_to_their_end_are_forgotten(log):
    log.commit([created(number + 2, f"/a/{number:04d}") for number in range(600)])
    for number in range(550):
        log.page("/a/", f"/a/{number:04d}", 3, 601)
    assert len(log._ahead) <= 256


def test_a_row_that_the_index_knows_and_the_table_has_not_is_told(log):
    log.commit([created(2, "/a")])
    with pytest.raises(DamagedFile, match="revision 3 of /b is missing"):
        log.entry("/b", 3, 3)
    with pytest.raises(DamagedFile, match="revision 2 of /b is not what was written"):
        log.entry("/b", 2, 2)
    assert log.entry("/a", 2, 2).value == b"value"
