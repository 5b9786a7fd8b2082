"""WebSocket clients against a streaming server that speaks SPDY only, as a runtime does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest

from sampan.api.errors import BadRequest
from sampan.apiserver.proxy.stream_translation import (
    CLOSE,
    ERROR,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    V5,
    ConnectNode,
    Wanted,
    translate,
    tunnel,
    wants_translation,
    wants_tunnel,
)
from sampan.core.http import websocket
from sampan.core.http.client import HttpClient, Upgraded
from sampan.core.http.messages import Connection, Handler, Reply, Request, Response, Upgrade
from sampan.core.http.server import Server
from sampan.core.http.websocket import FrameReader, render_frame
from tests.support.parts.streaming import SpdyCommand, SpdyPorts, status_of

KEY = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
HANDSHAKE = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    KEY,
    ("sec-websocket-version", "13"),
]
SPDY_CHOSEN = (("connection", "Upgrade"), ("upgrade", "SPDY/3.1"))


class Client:
    """A WebSocket client: messages by channel."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._reader = FrameReader(from_client=False)
        self.said: dict[int, bytes] = {}
        self.closed = False

    async def send(self, channel: int, payload: bytes = b"") -> None:
        message = bytes([channel]) + payload
        await self._connection.write(render_frame(websocket.BINARY, message, b"abcd"))

    async def until(self, channel: int, text: bytes = b"") -> None:
        while not (channel in self.said and text in self.said[channel]):
            assert await self._listen(), self.said

    async def until_closed(self) -> None:
        while not self.closed:
            assert await self._listen(), self.said
        await self._connection.write(render_frame(websocket.CLOSE, b"", b"abcd"))
        self._connection.close()

    async def _listen(self) -> bool:
        data = await self._connection.read()
        for frame in self._reader.feed(data):
            assert not self.closed, "nothing comes after the close"
            if frame.opcode == websocket.CLOSE:
                self.closed = True
            else:
                channel = frame.payload[0]
                self.said[channel] = self.said.get(channel, b"") + frame.payload[1:]
        return bool(data)

    def status(self) -> dict[str, object]:
        return orjson.loads(self.said[ERROR])


@asynccontextmanager
async def between(node: Handler, wanted: Wanted) -> AsyncIterator[tuple[HttpClient, str]]:
    """A client, the translating server, and a node behind it."""
    far, http, client = Server(node), HttpClient(), HttpClient()
    far_url = f"http://127.0.0.1:{await far.start('127.0.0.1', 0)}"

    def connect_to(url: str) -> ConnectNode:
        async def connect(protocols: tuple[str, ...]) -> Upgraded:
            offered = [("x-stream-protocol-version", one) for one in protocols]
            return await http.upgrade("POST", url, headers=[*SPDY_CHOSEN, *offered])

        return connect

    async def middle(request: Request) -> Reply:
        connect = connect_to("http://127.0.0.1:1/" if request.path == "/down" else far_url)
        if wants_tunnel(request):
            return await tunnel(request, connect)
        assert wants_translation(request)
        return translate(request, wanted, connect)

    near = Server(middle)
    url = f"http://127.0.0.1:{await near.start('127.0.0.1', 0)}"
    try:
        yield client, url
    finally:
        for part in (client, http):
            await part.close()
        await near.stop(1.0)
        await far.stop(1.0)


def runs(command: SpdyCommand) -> Handler:
    async def node(request: Request) -> Upgrade:
        chosen = request.headers["x-stream-protocol-version"].split(", ")[0]
        return Upgrade((*SPDY_CHOSEN, ("x-stream-protocol-version", chosen)), command.run)

    return node


async def opened(http: HttpClient, url: str, protocol: str = V5) -> Client:
    headers = [*HANDSHAKE, ("sec-websocket-protocol", protocol)]
    answer = await http.upgrade("GET", url, headers=headers)
    assert (answer.status, answer.headers["sec-websocket-protocol"]) == (101, protocol)
    assert answer.connection is not None
    return Client(answer.connection)


ALL = Wanted(stdin=True, stdout=True, stderr=True, tty=False)


def test_a_command_with_input_output_and_exit_code():
    """[A11] v5.channel.k8s.io"""

    async def story():
        command = SpdyCommand(streams=4, exit_code=3)
        async with between(runs(command), ALL) as (http, url):
            client = await opened(http, url)
            await client.until(STDERR, b"started\n")
            await client.send(STDIN, b"hello ")
            await client.send(STDIN, b"world")
            await client.until(STDOUT, b"HELLO WORLD")
            await client.send(CLOSE, bytes([STDIN]))
            await client.until_closed()
            assert client.status() == status_of(3)
            assert command.pongs == [2]
            assert list(command.kinds.values()) == ["error", "stdin", "stdout", "stderr"]

    asyncio.run(story())


def test_much_output_arrives_whole_before_the_status():
    async def story():
        async with between(runs(SpdyCommand(streams=4)), ALL) as (http, url):
            client = await opened(http, url)
            block = bytes(range(97, 123)) * 10_000
            await client.send(STDIN, block)
            await client.send(CLOSE, bytes([STDIN]))
            await client.until_closed()
            assert client.said[STDOUT] == block.upper()
            assert client.status() == {"metadata": {}, "status": "Success"}

    asyncio.run(story())


def test_a_terminal_has_no_stderr_and_tells_its_size():
    async def story():
        command = SpdyCommand(streams=4)
        wanted = Wanted(stdin=True, stdout=True, stderr=True, tty=True)
        async with between(runs(command), wanted) as (http, url):
            client = await opened(http, url)
            await client.send(RESIZE, b'{"Width":80,"Height":24}')
            await client.send(CLOSE, bytes([STDIN]))
            await client.until_closed()
            assert command.sizes == b'{"Width":80,"Height":24}'
            assert list(command.kinds.values()) == ["error", "stdin", "stdout", "resize"]

    asyncio.run(story())


def test_the_client_hears_at_once_that_the_connection_stands():
    async def story():
        wanted = Wanted(stdin=False, stdout=True, stderr=False, tty=False)
        async with between(runs(SpdyCommand(streams=2)), wanted) as (http, url):
            client = await opened(http, url)
            await client.until_closed()
            assert client.said == {STDOUT: b"", ERROR: b'{"metadata":{},"status":"Success"}'}

    asyncio.run(story())


@pytest.mark.parametrize("trouble", ["refused", "down", "broken"])
def test_what_goes_wrong_comes_as_a_status(trouble):
    async def refuse(request: Request) -> Response:
        return Response(500, (), b'container not found ("main")')

    async def story():
        command = SpdyCommand(streams=2, breaks_off=True)
        node = refuse if trouble == "refused" else runs(command)
        wanted = Wanted(stdin=False, stdout=True, stderr=False, tty=False)
        async with between(node, wanted) as (http, url):
            client = await opened(http, f"{url}/down" if trouble == "down" else url)
            await client.until_closed()
            status = client.status()
            assert (status["status"], status["reason"]) == ("Failure", "InternalError")
            words = {
                "refused": 'unable to upgrade connection: container not found ("main")',
                "down": "error dialing backend: dial 127.0.0.1:1",
                "broken": "error reading from error stream",
            }
            assert words[trouble] in str(status["message"])

    asyncio.run(story())


def test_a_client_that_leaves_ends_the_command():
    async def story():
        ended = asyncio.Event()

        async def node(request: Request) -> Upgrade:
            async def run(connection: Connection) -> None:
                while await connection.read():
                    pass
                ended.set()

            return Upgrade(SPDY_CHOSEN, run)

        async with between(node, ALL) as (http, url):
            client = await opened(http, url)
            client._connection.close()
            await ended.wait()

    asyncio.run(story())


def test_port_forward_travels_as_spdy_inside_the_websocket():
    """[A11] SPDY/3.1+portforward.k8s.io"""

    async def node(request: Request) -> Upgrade:
        chosen = request.headers["x-stream-protocol-version"]
        return Upgrade((*SPDY_CHOSEN, ("x-stream-protocol-version", chosen)), SpdyPorts().run)

    async def story():
        async with between(node, ALL) as (http, url):
            protocol = "SPDY/3.1+portforward.k8s.io"
            headers = [*HANDSHAKE, ("sec-websocket-protocol", protocol)]
            answer = await http.upgrade("GET", url, headers=headers)
            assert answer.headers["sec-websocket-protocol"] == protocol
            connection = answer.connection
            assert connection is not None
            from sampan.core.http import spdy

            session, reader = spdy.Session(), FrameReader(from_client=False)
            stream, frame = session.open({"streamtype": "data", "port": "80", "requestid": "0"})
            frames = frame + session.data(stream, b"ping")
            for part in (frames[:7], frames[7:]):
                await connection.write(render_frame(websocket.BINARY, part, b"abcd"))
            events: list[spdy.Event] = []
            while not any(isinstance(event, spdy.Data) for event in events):
                for message in reader.feed(await connection.read()):
                    events += session.feed(message.payload)
            assert events[-1] == spdy.Data(stream, b"80:ping")
            connection.close()

    asyncio.run(story())


def test_a_refused_port_forward_is_answered_as_the_node_does():
    async def node(request: Request) -> Response:
        return Response(404, (("content-type", "text/plain"),), b"pod does not exist")

    async def story():
        async with between(node, ALL) as (http, url):
            headers = [*HANDSHAKE, ("sec-websocket-protocol", "SPDY/3.1+portforward.k8s.io")]
            answer = await http.upgrade("GET", url, headers=headers)
            assert (answer.status, answer.body) == (404, b"pod does not exist")

    asyncio.run(story())


def test_a_bad_handshake_is_a_bad_request():
    async def connect(protocols: tuple[str, ...]) -> Upgraded:
        raise AssertionError

    headers = dict(HANDSHAKE) | {"sec-websocket-protocol": V5, "sec-websocket-version": "7"}
    request = Request("GET", "/", "", headers)
    assert wants_translation(request)
    with pytest.raises(BadRequest, match="version"):
        translate(request, ALL, connect)
    older = Request("GET", "/", "", headers | {"sec-websocket-protocol": "v4.channel.k8s.io"})
    assert not wants_translation(older)
