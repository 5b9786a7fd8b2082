"""[N1] A directory of manifests, with the real inotify."""

import asyncio
import contextlib
import os

import pytest

from sampan.core.clock import SystemClock
from sampan.kubelet.sources import files
from sampan.kubelet.sources.files import FileSource
from sampan.kubelet.sources.manifests import BadManifest
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


class Delivered:
    """The sets that came, as lists of words: a manifest here is a word, "bad" is a bad one."""

    def __init__(self):
        self.sets = []
        self.reads = []
        self._came = asyncio.Event()

    def deliver(self, pods):
        self.sets.append([one["word"] for one in pods])
        self._came.set()

    def decode(self, data, path):
        self.reads.append(data.decode())
        if data == b"bad":
            raise BadManifest("it is bad")
        return {"word": data.decode()}

    async def until(self, wanted):
        async with asyncio.timeout(60):
            while self.sets[-1:] != [wanted]:
                self._came.clear()
                await self._came.wait()


def told(path, story):
    async def run():
        delivered = Delivered()
        source = FileSource(
            path, deliver=delivered.deliver, decode=delivered.decode, clock=SystemClock()
        )
        running = asyncio.get_running_loop().create_task(source.run())
        try:
            await story(delivered)
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
        return delivered

    return asyncio.run(run())


def old(path, text):
    """A file that was written long ago."""
    path.write_text(text)
    os.utime(path, (1, 1))


def test_all_files_come_as_one_first_set_without_hidden_ones(tmp_path):
    for name, word in (("b.yaml", "b"), ("a.json", "a"), (".hidden", "h"), ("c", "bad")):
        old(tmp_path / name, word)
    (tmp_path / "folder").mkdir()

    async def story(delivered):
        await delivered.until(["a", "b"])

    assert told(tmp_path, story).sets == [["a", "b"]]


def test_a_directory_that_is_not_there_is_an_empty_set_and_may_come_later(tmp_path):
    async def story(delivered):
        await delivered.until([])
        (tmp_path / "m").mkdir()
        old(tmp_path / "m" / "a", "a")
        await delivered.until(["a"])

    told(tmp_path / "m", story)


def test_changes_are_seen_at_once(tmp_path):
    async def story(delivered):
        await delivered.until([])
        (tmp_path / "a").write_text("one")
        await delivered.until(["one"])
        (tmp_path / "a").write_text("two")
        await delivered.until(["two"])
        (tmp_path / ".new").write_text("b")
        (tmp_path / ".new").rename(tmp_path / "b")
        await delivered.until(["two", "b"])
        (tmp_path / "a").unlink()
        await delivered.until(["b"])

    began = asyncio.run(_now())
    told(tmp_path, story)
    assert asyncio.run(_now()) - began < files.OPEN_SECONDS, "no step waited for quiet"


async def _now():
    return SystemClock().monotonic()


def test_a_file_that_is_being_written_is_not_taken_half(tmp_path):
    async def story(delivered):
        await delivered.until([])
        with open(tmp_path / "a", "w") as file:
            for part in ("one", " and", " two"):
                file.write(part)
                file.flush()
                await asyncio.sleep(0.05)
            assert delivered.reads == []
        await delivered.until(["one and two"])

    assert told(tmp_path, story).reads == ["one and two"]


def test_the_first_set_waits_for_a_file_that_was_just_written(tmp_path):
    """[N3] a set without it would end its pod"""
    old(tmp_path / "a", "a")
    (tmp_path / "b").write_text("b")

    async def story(delivered):
        await delivered.until(["a", "b"])

    assert told(tmp_path, story).sets == [["a", "b"]]


def test_a_broken_file_is_read_once_and_what_it_said_before_stays(tmp_path):
    old(tmp_path / "a", "a")
    old(tmp_path / "b", "b")

    async def story(delivered):
        await delivered.until(["a", "b"])
        (tmp_path / "a").write_text("bad")
        (tmp_path / "c").write_text("c")
        await delivered.until(["a", "b", "c"])
        (tmp_path / "d").write_text("d")
        await delivered.until(["a", "b", "c", "d"])

    assert told(tmp_path, story).reads.count("bad") == 1


def test_a_single_file_is_followed_too(tmp_path):
    old(tmp_path / "a", "a")
    old(tmp_path / "b", "b")

    async def story(delivered):
        await delivered.until(["a"])
        (tmp_path / "new").write_text("other")
        (tmp_path / "new").rename(tmp_path / "a")
        await delivered.until(["other"])

    told(tmp_path / "a", story)


@pytest.mark.slow
def test_a_file_that_stays_open_is_taken_when_nothing_was_written_for_a_while(tmp_path):
    async def story(delivered):
        await delivered.until([])
        with open(tmp_path / "a", "w") as file:
            file.write("one")
            file.flush()
            await delivered.until(["one"])

    told(tmp_path, story)


def test_a_clock_that_is_set_back_does_not_keep_a_manifest_waiting(tmp_path):
    """[N1] Found by the fault run: the pod came an hour later."""

    async def story():
        clock, delivered = LoopClock(), Delivered()
        source = FileSource(
            tmp_path, deliver=delivered.deliver, decode=delivered.decode, clock=clock
        )
        (tmp_path / "one").write_text("one")
        assert (await source.look()).pending, "it may still be written"
        clock.jump(-3600)
        await asyncio.sleep(files.QUIET_SECONDS)
        await source.look()
        assert delivered.sets[-1] == ["one"]

    virtual_time.run(story())
