"""core/http/reply_end.py: somebody hears of an answer's end, once."""

import asyncio

from sampan.core.http.messages import Stream, Upgrade
from sampan.core.http.reply_end import when_over


async def words():
    yield b"one"


async def nothing(_connection):
    """Takes a connection over, and is done."""


def test_the_end_of_a_stream_is_heard_once_also_before_its_first_byte():
    heard = []

    async def story():
        for reads in (0, 1):
            reply = Stream(200, (), words())
            when_over(reply, lambda: heard.append("over"))
            for _ in range(reads):
                assert await anext(aiter(reply.chunks)) == b"one"
            await reply.chunks.aclose()
            await reply.chunks.aclose()

    asyncio.run(story())
    assert heard == ["over", "over"]


def test_everybody_who_asked_hears_of_the_end_of_a_connection():
    heard = []
    reply = Upgrade((), nothing)
    when_over(reply, lambda: heard.append("first"))
    when_over(reply, lambda: heard.append("second"))
    reply.ended()
    assert heard == ["first", "second"]


def test_chunks_that_tell_by_themselves_are_not_wrapped():
    class Telling:
        def when_closed(self, told):
            self.told = told

    chunks, heard = Telling(), []
    reply = Stream(200, (), chunks)
    when_over(reply, lambda: heard.append("over"))
    assert reply.chunks is chunks
    chunks.told()
    assert heard == ["over"]
