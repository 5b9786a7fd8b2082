"""Container logs: choosing lines, and following a file."""

import asyncio
import io
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.log_options import LogOptions
from sampan.core.file_events import FileEvents
from sampan.kubelet.server.logs import LogFormatter, moment, read_log, tail_start

NOW = moment(b"2026-11-15T06:33:00Z")
LOG = (
    b"2026-11-15T06:32:19.494359872Z stdout F one\n"
    b"2026-11-15T06:32:20.5Z stderr F two\n"
    b"2026-11-15T06:32:21Z stdout P thr\n"
    b"2026-11-15T06:32:21.000000001Z stdout F ee\n"
    b"garbage\n"
    b"2026-11-15T06:32:22.25Z stdout F \n"
)


def shown(options: LogOptions, log: bytes = LOG) -> bytes:
    formatter = LogFormatter(options, NOW)
    return formatter.feed(log) + formatter.finish()


def test_lines_are_shown_without_their_envelope_and_partial_ones_joined():
    """[N19]"""
    assert shown(LogOptions()) == b"one\ntwo\nthree\n\n"


def test_timestamps_stand_once_per_line_and_have_nine_digits():
    assert shown(LogOptions(timestamps=True)).splitlines() == [
        b"2026-11-15T06:32:19.494359872Z one",
        b"2026-11-15T06:32:20.500000000Z two",
        b"2026-11-15T06:32:21.000000000Z three",
        b"2026-11-15T06:32:22.250000000Z ",
    ]


def test_since_leaves_out_what_is_older():
    assert shown(LogOptions(since_seconds=39)) == b"three\n\n"
    assert shown(LogOptions(since_time="2026-11-15T07:32:20+01:00")) == b"two\nthree\n\n"


def test_a_stream_can_be_chosen():
    assert shown(LogOptions(stream="Stderr")) == b"two\n"
    assert shown(LogOptions(stream="Stdout")) == b"one\nthree\n\n"


def test_the_byte_limit_cuts_in_the_middle_of_a_line():
    formatter = LogFormatter(LogOptions(limit_bytes=6), NOW)
    assert formatter.feed(LOG) == b"one\ntw"
    assert formatter.full
    assert formatter.feed(LOG) == b""


def test_a_last_line_without_its_end_is_shown():
    assert shown(LogOptions(), LOG.rstrip(b"\n")[:-8]) == b"one\ntwo\nthree\n"
    assert shown(LogOptions(), b"2026-11-15T06:32:22Z stdout F cut") == b"cut\n"


@given(st.lists(st.integers(0, len(LOG)), max_size=6).map(sorted), st.booleans())
def test_any_split_of_the_file_shows_the_same(cuts, timestamps):
    options = LogOptions(timestamps=timestamps)
    formatter = LogFormatter(options, NOW)
    pieces = [LOG[a:b] for a, b in itertools.pairwise([0, *cuts, len(LOG)])]
    out = b"".join(map(formatter.feed, pieces)) + formatter.finish()
    assert out == shown(options)


TEXTS = st.binary(max_size=20).map(lambda text: text.replace(b"\n", b""))
LINES = st.lists(
    st.one_of(
        TEXTS,
        st.tuples(
            st.sampled_from([b"stdout", b"stderr"]), st.sampled_from([b"F", b"P"]), TEXTS
        ).map(lambda parts: b"2026-11-15T06:32:22Z " + b" ".join(parts)),
    )
)


@given(LINES)
def test_the_quick_way_shows_what_the_line_by_line_way_shows(lines):
    """A moment in the past leaves nothing out, but it has every line looked at."""
    whole = b"".join(line + b"\n" for line in lines)
    assert shown(LogOptions(), whole) == shown(LogOptions(since_time="1970-01-01T00:00:00Z"), whole)


@given(st.lists(st.binary(max_size=40_000).map(lambda b: b.replace(b"\n", b""))), st.integers(0, 8))
def test_the_tail_begins_where_the_last_lines_begin(lines, wanted):
    whole = b"".join(line + b"\n" for line in lines)
    start = tail_start(io.BytesIO(whole), wanted)
    expected = lines[max(0, len(lines) - wanted) :]
    assert whole[start:] == b"".join(line + b"\n" for line in expected)


class Log:
    """A container's log as a runtime writes it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "0.log"
        self.running = True
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  # open for as long as the container runs

    def write(self, text: str) -> None:
        self._file.write(f"2026-11-15T06:32:22Z stdout F {text}\n".encode())

    def write_raw(self, data: bytes) -> None:
        self._file.write(data)

    def rename(self) -> None:
        os.rename(self.path, f"{self.path}.20261115-063222")

    def reopen(self) -> None:
        self._file.close()
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  # open for as long as the container runs

    def end(self) -> None:
        self.running = False
        self._file.close()

    async def is_running(self) -> bool:
        return self.running


class Reader:
    """Follows a log in a task; `until` waits for what it has shown."""

    def __init__(self, log: Log, options: LogOptions) -> None:
        self.events = FileEvents()
        self.shown = b""
        self._more = asyncio.Event()
        self._log, self._options = log, options
        self.task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        async for block in read_log(
            self._log.path,
            self._options,
            now=NOW,
            events=self.events,
            is_running=self._log.is_running,
        ):
            self.shown += block
            self._more.set()

    async def until(self, text: bytes) -> None:
        while text not in self.shown:
            self._more.clear()
            await asyncio.wait_for(self._more.wait(), 60)

    async def end(self) -> bytes:
        await asyncio.wait_for(self.task, 60)
        self.events.close()
        return self.shown


def test_a_whole_log_and_its_tail(tmp_path):
    async def story():
        log = Log(tmp_path)
        for number in range(5):
            log.write(f"line {number}")
        log.end()
        assert await Reader(log, LogOptions(tail_lines=2)).end() == b"line 3\nline 4\n"
        assert await Reader(log, LogOptions(tail_lines=0)).end() == b""
        assert (await Reader(log, LogOptions()).end()).count(b"\n") == 5

    asyncio.run(story())


def test_following_shows_lines_as_they_come_and_ends_with_the_container(tmp_path):
    async def story():
        log = Log(tmp_path)
        log.write("old")
        reader = Reader(log, LogOptions(follow=True, tail_lines=1))
        await reader.until(b"old\n")
        log.write("new")
        await reader.until(b"new\n")
        log.write_raw(b"2026-11-15T06:32:22Z stdout F in ")
        log.write_raw(b"two writes\n")
        await reader.until(b"two writes\n")
        log.write("last words")
        log.end()
        assert await reader.end() == b"old\nnew\nin two writes\nlast words\n"

    asyncio.run(story())


def test_following_goes_on_across_a_rotation(tmp_path):
    """[N18]"""

    async def story():
        log = Log(tmp_path)
        log.write("one")
        reader = Reader(log, LogOptions(follow=True))
        await reader.until(b"one\n")
        log.rename()
        log.write("two, into the old file")
        await reader.until(b"two")
        log.write("three")
        log.reopen()
        log.write("four")
        await reader.until(b"four\n")
        log.end()
        assert await reader.end() == b"one\ntwo, into the old file\nthree\nfour\n"

    asyncio.run(story())


def test_following_ends_at_the_byte_limit(tmp_path):
    async def story():
        log = Log(tmp_path)
        reader = Reader(log, LogOptions(follow=True, limit_bytes=3))
        log.write("enough")
        assert await reader.end() == b"eno"
        log.end()

    asyncio.run(story())


def test_following_a_finished_container_shows_it_all_and_ends(tmp_path):
    async def story():
        log = Log(tmp_path)
        log.write("done")
        log.end()
        reader = Reader(log, LogOptions(follow=True))
        assert await reader.end() == b"done\n"

    asyncio.run(story())


def test_a_log_that_is_not_there_is_an_error(tmp_path):
    async def story():
        log = Log(tmp_path)
        log.end()
        log.path.unlink()
        with pytest.raises(FileNotFoundError):
            await Reader(log, LogOptions()).end()

    asyncio.run(story())
