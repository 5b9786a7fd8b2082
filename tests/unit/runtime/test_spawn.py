"""Programs are started with their pipes, and their end is told."""

import asyncio
import os

import pytest

from sampan.core.tasks import Tasks
from sampan.runtime.spawn import PIPE, Launch, line_from, spawn


def shell(text):
    return ("/bin/sh", "-c", text)


def test_a_program_reads_and_writes_its_pipes_and_ends_with_its_code():
    async def story():
        child = await spawn(Launch(shell("cat; exit 3"), stdin=PIPE, stdout=PIPE))
        child.stdin.write(b"words")
        child.stdin.close()
        assert await child.stdout.read() == b"words"
        assert [await child.wait(), await child.wait()] == [3, 3]
        assert child.stderr is None
        await child.end()

    asyncio.run(story())


def test_all_who_wait_hear_of_an_end_and_ending_kills():
    async def story():
        tasks = Tasks("test")
        child = await spawn(Launch(("sleep", "1000")))
        waiting = [tasks.start("waits", child.wait()) for _ in range(2)]
        await asyncio.sleep(0)
        await child.end()
        await child.end()
        assert [await task for task in waiting] == [-9, -9]

    asyncio.run(story())


def test_a_program_has_what_it_inherits_and_nothing_else():
    async def story():
        inherited, kept = os.pipe(), os.pipe()
        os.set_inheritable(kept[1], True)
        try:
            text = f"for n in {inherited[1]} {kept[1]}; do echo $WORD > /proc/self/fd/$n; done"
            child = await spawn(
                Launch(shell(text), environment=(("WORD", "here"),), inherited=(inherited[1],))
            )
            assert await child.wait() != 0
            os.close(inherited[1])
            os.close(kept[1])
            assert await line_from(inherited[0]) == b"here\n"
            assert await line_from(kept[0]) == b""
            await child.end()
        finally:
            for number in (inherited[0], kept[0]):
                os.close(number)

    asyncio.run(story())


def test_a_program_that_is_not_there_is_an_error():
    async def story():
        with pytest.raises(FileNotFoundError):
            await spawn(Launch(("/nonexistent",)))

    asyncio.run(story())
