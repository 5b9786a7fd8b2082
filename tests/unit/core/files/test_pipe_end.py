"""Ends of pipes: closed once, whichever loop has them."""

import asyncio
import os

import pytest
import uvloop

from sampan.core.files.pipe_end import PipeEnd, own_end

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@LOOPS
def test_what_is_written_arrives_and_the_descriptor_is_closed(run):
    async def story():
        reading, writing = os.pipe()
        end, reader = PipeEnd(reading), asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), end
        )
        os.write(writing, b"word\n")
        assert await reader.readline() == b"word\n"
        transport.close()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not is_open(reading)
        os.close(writing)

    run(story())


def test_another_file_of_that_number_stays_open():
    """uvloop's transport closes the descriptor, and then the file: another thread's by then."""

    async def story():
        reading, writing = os.pipe()
        end = PipeEnd(reading)
        os.close(reading)  # as libuv does
        others = os.open(os.devnull, os.O_RDONLY)
        assert others == reading
        end.close()
        assert is_open(others)
        os.close(others)
        os.close(writing)

    uvloop.run(story())


@LOOPS
def test_a_file_is_closed_when_its_end_is_taken_over(run):
    async def story():
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb", buffering=0) as file:
            end = own_end(file)
            assert file.closed
            assert is_open(end.fileno())
            os.close(end.fileno())
        os.close(writing)

    run(story())
