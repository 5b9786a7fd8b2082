"""Raw connections over a real pair of sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sampan.core.http.raw_connection import READ_AHEAD, RawConnection


@asynccontextmanager
async def pair(leftover: bytes = b"") -> AsyncIterator[tuple[RawConnection, socket.socket]]:
    near, far = socket.socketpair()
    far.setblocking(False)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=near)
    raw = RawConnection(transport, leftover)
    transport.set_protocol(raw)
    try:
        yield raw, far
    finally:
        raw.abort()
        far.close()
        await asyncio.sleep(0)


def test_bytes_that_came_with_the_head_come_first():
    async def story():
        async with pair(b"early ") as (raw, far):
            assert await raw.read() == b"early "
            far.send(b"late")
            assert await raw.read() == b"late"

    asyncio.run(story())


def test_an_end_from_the_other_side_still_lets_us_write():
    async def story():
        loop = asyncio.get_running_loop()
        async with pair() as (raw, far):
            far.send(b"last")
            far.shutdown(socket.SHUT_WR)
            assert await raw.read() == b"last"
            assert await raw.read() == b""
            await raw.write(b"answer")
            assert await loop.sock_recv(far, 100) == b"answer"
            raw.write_eof()
            assert await loop.sock_recv(far, 100) == b""

    asyncio.run(story())


def test_a_writer_waits_for_a_slow_reader():
    async def story():
        loop = asyncio.get_running_loop()
        async with pair() as (raw, far):
            block = b"x" * 4_000_000
            writing = loop.create_task(raw.write(block))
            await asyncio.sleep(0.01)
            assert not writing.done()
            got = 0
            while got < len(block):
                got += len(await loop.sock_recv(far, 1_000_000))
            await writing

    asyncio.run(story())


def test_nobody_reads_ahead_without_a_bound():
    async def story():
        loop = asyncio.get_running_loop()
        async with pair() as (raw, far):
            block = b"x" * 8_000_000
            sending = loop.create_task(loop.sock_sendall(far, block))
            await asyncio.sleep(0.02)
            assert not sending.done()
            got = len(await raw.read())
            assert got <= 2 * READ_AHEAD
            while got < len(block):
                got += len(await raw.read())
            await sending

    asyncio.run(story())


def test_after_the_other_side_is_gone_reading_ends_and_writing_fails():
    async def story():
        async with pair() as (raw, far):
            far.close()
            assert await raw.read() == b""

            async def keep_writing() -> None:
                while True:
                    await raw.write(b"x")
                    await asyncio.sleep(0)

            with pytest.raises(ConnectionError):
                await keep_writing()

    asyncio.run(story())
