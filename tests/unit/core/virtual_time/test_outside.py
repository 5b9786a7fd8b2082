"""Who outside may still react to what happened."""

import asyncio

from sampan.core.http.messages import Request, Response, Stream
from sampan.core.virtual_time.outside import Outside


async def chunks():
    yield b"a"
    yield b"b"


def served(outside, reply):
    async def handler(_request):
        return reply

    return asyncio.run(outside.around(handler)(Request("GET", "/", "", {}, b"")))


def test_nobody_who_reads_no_stream_is_awaited():
    outside = Outside(lambda: 5)
    answer = Response(200, (), b"x")
    assert served(outside, answer) is answer
    assert not outside.awaited()


def test_whoever_reads_a_stream_is_awaited_once_for_what_happened():
    revision = [1]
    outside = Outside(lambda: revision[0])

    async def story():
        async def handler(_request):
            return Stream(200, (), chunks())

        reply = await outside.around(handler)(Request("GET", "/", "", {}, b""))
        assert not outside.awaited(), "it is not read yet"
        revision[0] += 1
        assert await anext(reply.chunks) == b"a"
        assert outside.awaited()
        assert not outside.awaited(), "nothing new"
        revision[0] += 1
        await reply.chunks.aclose()
        assert not outside.awaited(), "it is closed"

    asyncio.run(story())
