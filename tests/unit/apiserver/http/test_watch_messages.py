"""apiserver/http/watch_messages.py: a watch over a WebSocket."""

import asyncio

import pytest

from sampan.api.errors import BadRequest
from sampan.apiserver.http.watch_messages import watch_messages
from sampan.core.http import websocket
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Request, Stream
from sampan.core.http.server import Server
from sampan.core.http.websocket import FrameReader, render_frame

HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}


class Chunks:
    """A watch: what is told, and then nothing happens, or it ends."""

    def __init__(self, chunks, ends):
        self._chunks, self._ends = list(chunks), ends
        self.closed = asyncio.Event()

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self._chunks:
            return self._chunks.pop(0)
        if not self._ends:
            await asyncio.Event().wait()
        raise StopAsyncIteration

    async def aclose(self):
        self.closed.set()


async def heard(chunks, count):
    """The first `count` frames; then the client closes."""

    async def serve(request):
        return watch_messages(request, Stream(200, (), chunks))

    server, client = Server(serve), HttpClient()
    url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
    answer = await client.upgrade("GET", url, headers=[*HANDSHAKE.items()])
    frames, reader = [], FrameReader(from_client=False)
    try:
        while len(frames) < count:
            frames += reader.feed(await answer.connection.read())
        await answer.connection.write(render_frame(websocket.CLOSE, b"\x03\xe8", b"abcd"))
        async with asyncio.timeout(60):
            await chunks.closed.wait()
    finally:
        answer.connection.close()
        await client.close()
        await server.stop(1.0)
    return [(frame.opcode, frame.payload) for frame in frames]


def test_each_event_is_a_message_and_an_idle_watch_ends_with_its_client():
    async def test():
        return await heard(Chunks([b'{"a":1}\n{"b":2}\n', b'{"c":3}\n'], ends=False), 3)

    assert asyncio.run(test()) == [
        (websocket.TEXT, b'{"a":1}'),
        (websocket.TEXT, b'{"b":2}'),
        (websocket.TEXT, b'{"c":3}'),
    ]


def test_a_watch_that_ends_closes_the_socket():
    async def test():
        return await heard(Chunks([], ends=True), 1)

    assert asyncio.run(test())[0][0] == websocket.CLOSE


@pytest.mark.parametrize(
    "headers", [{"sec-websocket-version": "8"}, {"sec-websocket-protocol": "a, b"}]
)
def test_a_handshake_that_cannot_be_answered_is_refused(headers):
    asked = Request("GET", "/", "", {**HANDSHAKE, **headers})
    with pytest.raises(BadRequest):
        watch_messages(asked, Stream(200, (), None))
