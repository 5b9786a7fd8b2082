"""A log over a WebSocket."""

import asyncio
import base64

import pytest

from sampan.api.errors import BadRequest
from sampan.apiserver.proxy.log_messages import chosen_protocol, log_messages
from sampan.core.http import websocket
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Request
from sampan.core.http.server import Server
from sampan.core.http.websocket import FrameReader, render_frame

HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}


async def lines():
    yield b"one\n"
    yield b"two\n"


async def heard(protocol):
    async def serve(request):
        return log_messages(request, chosen_protocol(request), lines())

    server, client = Server(serve), HttpClient()
    url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
    offered = [("sec-websocket-protocol", protocol)] if protocol else []
    answer = await client.upgrade("GET", url, headers=[*HANDSHAKE.items(), *offered])
    frames = []
    try:
        reader = FrameReader(from_client=False)
        while data := await answer.connection.read():
            for frame in reader.feed(data):
                if frame.opcode == websocket.CLOSE:
                    close = render_frame(websocket.CLOSE, frame.payload, b"abcd")
                    await answer.connection.write(close)
                    return frames
                frames.append((frame.opcode, frame.payload))
    finally:
        answer.connection.close()
        await client.close()
        await server.stop(1.0)
    raise AssertionError("ended without a close")


@pytest.mark.parametrize("protocol", ["", "binary.k8s.io"])
def test_bytes_come_as_they_are_after_an_empty_message(protocol):
    """[A9]"""
    found = asyncio.run(heard(protocol))
    binary = websocket.BINARY
    assert found == [(binary, b""), (binary, b"one\n"), (binary, b"two\n")]


def test_or_as_text():
    found = asyncio.run(heard("base64.binary.k8s.io"))
    assert [opcode for opcode, _ in found] == [websocket.TEXT] * 3
    assert b"".join(base64.b64decode(text) for _, text in found) == b"one\ntwo\n"


def test_another_protocol_is_refused():
    request = Request("GET", "/", "", {**HANDSHAKE, "sec-websocket-protocol": "nosuch"})
    with pytest.raises(BadRequest, match=r"binary\.k8s\.io, base64"):
        chosen_protocol(request)
