"""One part's process after the other, with a small program in the part's place."""

import asyncio
import json
import os
import signal
import sys

import pytest

from sampan.cmd.cluster.processes.handover import Handover
from sampan.cmd.cluster.processes.part_process import PartProcess, note, same_command
from sampan.cmd.errors import CannotStart
from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks

# What a part does, in few words: hear, answer, wait.
PROGRAM = """
import os, signal, sys
life, answer, lock = map(int, sys.argv[-1].partition("=")[2].split(",")[1:])
while not os.read(life, 1) == b"\\n":
    pass
os.write(answer, sys.argv[1].encode() + b"\\n")
os.close(answer)
if sys.argv[1] == "ready":
    signal.pause()
sys.exit(1)
"""


def part(says, noted):
    lock = os.open("/dev/null", os.O_RDONLY)
    command = [sys.executable, "-c", PROGRAM, says]
    made = PartProcess(
        "scheduler", command, Handover("none", {}), lock, lambda: noted.append(1), SystemClock()
    )
    made.may_start.set()
    return made


def run(story):
    async def main():
        tasks = Tasks("test")
        try:
            async with asyncio.timeout(60):
                await story(tasks)
        finally:
            await tasks.stop()

    asyncio.run(main())


@pytest.mark.slow
def test_a_process_that_ends_is_started_again_until_it_is_told_to_stop():
    noted = []

    async def story(tasks):
        kept = part("ready", noted)
        kept.task = tasks.start("part", kept.keep())
        await kept.started()
        first = kept.pid
        os.kill(first, signal.SIGKILL)
        while len(noted) < 2:
            await asyncio.sleep(0.01)
        assert kept.restarts == 1
        assert kept.pid not in (0, first)
        await kept.stop()
        assert kept.pid == 0
        assert kept.task.done()

    run(story)


@pytest.mark.slow
def test_a_process_that_never_was_ready_says_why_and_is_not_started_again():
    async def story(tasks):
        kept = part("the port is taken", [])
        kept.task = tasks.start("part", kept.keep())
        with pytest.raises(CannotStart, match="the port is taken"):
            await kept.started()
        await kept.task
        assert kept.restarts == 0
        await kept.stop()

    run(story)


def test_the_same_command_without_what_is_the_parents_only():
    words = same_command(["up", "--detach", "--nodes", "3", "--processes"])
    assert words[1:] == ["-m", "sampan", "up", "--nodes", "3", "--processes"]


@pytest.mark.slow
def test_a_note_that_cannot_be_written_ends_nothing(tmp_path):
    place = tmp_path / "processes.json"

    async def story(tasks):
        kept = part("ready", [])
        kept._changed = lambda: note(place, {"scheduler": kept})
        kept.task = tasks.start("part", kept.keep())
        await kept.started()
        assert json.loads(place.read_text())["scheduler"]["pid"] == kept.pid
        place.unlink()
        place.mkdir()
        first = kept.pid
        kept.signal(signal.SIGKILL)
        while kept.pid in (0, first):
            await asyncio.sleep(0.01)
        assert not kept.task.done()
        await kept.stop()
        assert kept.restarts == 1

    run(story)


@pytest.mark.slow
def test_a_program_that_cannot_be_started_is_told():
    async def story(tasks):
        kept = part("ready", [])
        kept._command = ["/nowhere/at/all"]
        kept.task = tasks.start("part", kept.keep())
        with pytest.raises(CannotStart, match="the scheduler cannot be started"):
            await kept.started()

    run(story)
