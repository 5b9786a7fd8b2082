"""Port-forward over WebSocket channels, as the Python client does it."""

import asyncio
import base64

import pytest

from sampan.api.errors import BadRequest
from sampan.apiserver.proxy.port_translation import port_channels
from sampan.core.http import websocket
from sampan.core.http.client import HttpClient, Upgraded
from sampan.core.http.messages import Reply, Request, Response, Upgrade
from sampan.core.http.server import Server
from sampan.core.http.websocket import FrameReader, render_frame
from tests.support.parts.streaming import SpdyPorts

HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}
V4 = "v4.channel.k8s.io"
SPDY_CHOSEN = (("connection", "Upgrade"), ("upgrade", "SPDY/3.1"))


async def node(request: Request) -> Reply:
    if request.path == "/refuses":
        return Response(500, (), b"no sandbox")
    return Upgrade(SPDY_CHOSEN, SpdyPorts().run)


async def talk(path: str, *messages: bytes, protocol: str = V4) -> dict[int, bytes]:
    """Everything that a client of ports 80 and 81 hears, by channel, until the close."""
    far, http, client = Server(node), HttpClient(), HttpClient()
    far_url = f"http://127.0.0.1:{await far.start('127.0.0.1', 0)}{path}"

    async def connect(protocols: tuple[str, ...]) -> Upgraded:
        return await http.upgrade("POST", far_url, headers=SPDY_CHOSEN)

    async def middle(request: Request) -> Reply:
        return port_channels(request, ["80", "81"], connect)

    near = Server(middle)
    url = f"http://127.0.0.1:{await near.start('127.0.0.1', 0)}"
    heard: dict[int, bytes] = {}
    offered = [("sec-websocket-protocol", protocol)] if protocol else []
    answer = await client.upgrade("GET", url, headers=[*HANDSHAKE.items(), *offered])
    assert answer.connection is not None
    in_base64 = "base64" in protocol
    try:
        for message in messages:
            if in_base64:
                message = bytes([ord("0") + message[0]]) + base64.b64encode(message[1:])
            await answer.connection.write(render_frame(websocket.BINARY, message, b"abcd"))
        reader = FrameReader(from_client=False)
        while data := await answer.connection.read():
            for frame in reader.feed(data):
                if frame.opcode == websocket.CLOSE:
                    return heard
                channel, payload = frame.payload[0], frame.payload[1:]
                assert frame.opcode == (websocket.TEXT if in_base64 else websocket.BINARY)
                if in_base64:
                    channel, payload = channel - ord("0"), base64.b64decode(payload)
                heard[channel] = heard.get(channel, b"") + payload
        raise AssertionError(f"ended without a close: {heard}")
    finally:
        answer.connection.close()
        for part in (client, http):
            await part.close()
        await near.stop(1.0)
        await far.stop(1.0)


def test_each_port_has_its_channel_and_all_ends_close_the_socket():
    heard = asyncio.run(talk("/", b"\x02x", b"\x00hello", b"\x00end", b"\x02end"))
    assert heard == {
        0: b"\x50\x0080:hello80:end",
        1: b"\x50\x00",
        2: b"\x51\x0081:x81:end",
        3: b"\x51\x00",
    }


def test_a_node_that_refuses_is_heard_on_the_error_channel():
    heard = asyncio.run(talk("/refuses"))
    assert b"unable to upgrade connection: no sandbox" in heard[1]


@pytest.mark.parametrize(
    ("ports", "headers", "message"),
    [
        ([], {}, 'query parameter "port" is required'),
        (["x"], {}, 'unable to parse "x" as a port'),
        (["80"], {"sec-websocket-protocol": "nosuch"}, "spoken here are v4.channel.k8s.io"),
        (["80"], {"sec-websocket-version": "7"}, "version"),
    ],
)
def test_what_cannot_be_forwarded_is_a_bad_request(ports, headers, message):
    async def connect(protocols: tuple[str, ...]) -> Upgraded:
        raise AssertionError

    request = Request("GET", "/", "", HANDSHAKE | headers)
    with pytest.raises(BadRequest) as raised:
        port_channels(request, ports, connect)
    assert message in raised.value.message


@pytest.mark.parametrize(
    "protocol",
    ["", "channel.k8s.io", "v4.base64.channel.k8s.io", "base64.channel.k8s.io", f"nosuch, {V4}"],
)
def test_every_protocol_of_upstream_is_spoken(protocol):
    """[A9] kr8s names none, and is taken for the oldest."""
    heard = asyncio.run(talk("/", b"\x00hello", b"\x00end", b"\x02end", protocol=protocol))
    assert heard[0] == b"\x50\x0080:hello80:end"
