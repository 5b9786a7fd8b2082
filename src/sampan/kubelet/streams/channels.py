"""The client's side of exec and attach: what travels on which channel, over SPDY or a WebSocket.

Job: bytes of stdin, stdout, stderr, terminal sizes and one status, whichever way the client speaks.
Invariant: bytes of one channel keep their order; nothing follows the status.
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Protocol

from sampan.core.fast_dataclass import dataclass
from sampan.core.http import spdy
from sampan.core.http.messages import Connection, Reply, Request, Response, Upgrade
from sampan.core.http.websocket import (
    BINARY,
    TEXT,
    WebSocket,
    accept,
    is_websocket,
    protocols_of,
    why_not,
)
from sampan.kubelet.contracts.local_streams import StreamOptions

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
SPDY = "SPDY/3.1"
SPDY_PROTOCOLS = (
    "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io",
)  # fmt: skip
V5 = "v5.channel.k8s.io"
WEB_PROTOCOLS = (
    V5, "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io",
)  # fmt: skip
_TOLD_IN_JSON = {V5, "v4.channel.k8s.io", "v4.base64.channel.k8s.io"}
_WITHOUT_SIZES = {"v2.channel.k8s.io", "channel.k8s.io", ""}  # of terminals
_NAMES = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}
_OPEN_SECONDS = 30.0  # for all streams; as upstream's
_FINISH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Arrived:
    channel: int
    payload: bytes
    closed: bool = False  # no more will come on it


class Channels(Protocol):
    async def receive(self) -> Arrived | None:
        """None: the client is gone."""

    async def send(self, channel: int, payload: bytes) -> None:
        """Raises ConnectionError."""

    async def finish(self, status: bytes) -> None: ...


Session = Callable[[Channels], Awaitable[None]]


def upgrade(request: Request, options: StreamOptions, session: Session) -> Reply:
    """The answer to the client's handshake; then `session` has the channels."""
    if is_websocket(request):
        return _websocket(request, options, session)
    if request.headers.get("upgrade", "").upper() != SPDY:
        return Response(400, (("content-type", "text/plain"),), b"Upgrade request required\n")
    chosen = chosen_protocol(request, SPDY_PROTOCOLS)
    if chosen is None:
        return _no_protocol(SPDY_PROTOCOLS)

    async def take_over(connection: Connection) -> None:
        channels = SpdyChannels(connection, chosen)
        await channels.open(options)
        await session(channels)

    headers = [("connection", "Upgrade"), ("upgrade", SPDY)]
    if chosen:
        headers.append(("x-stream-protocol-version", chosen))
    return Upgrade(headers, take_over)


def chosen_protocol(request: Request, known: tuple[str, ...]) -> str | None:
    """The first of ours that the client offers; "" where it offers none at all."""
    offered = [
        part.strip() for part in request.headers.get("x-stream-protocol-version", "").split(",")
    ]
    if not any(offered):
        return ""
    return next((protocol for protocol in known if protocol in offered), None)


def _no_protocol(known: tuple[str, ...]) -> Response:
    lines = [("x-accepted-stream-protocol-versions", protocol) for protocol in known]
    text = b"unable to upgrade: unable to negotiate protocol\n"
    return Response(403, (("content-type", "text/plain"), *lines), text)


def status_for(protocol: str, status: bytes) -> bytes:
    """What the error channel carries: a Status, but before version 4 nothing more than a message,
    and nothing at all of a success."""
    if protocol in _TOLD_IN_JSON:
        return status
    said = json.loads(status)
    return b"" if said["status"] == "Success" else said.get("message", "").encode()


def _websocket(request: Request, options: StreamOptions, session: Session) -> Reply:
    if problem := why_not(request):
        return Response(400, (("content-type", "text/plain"),), f"{problem}\n".encode())
    offered = protocols_of(request)
    chosen = next((protocol for protocol in offered if protocol in WEB_PROTOCOLS), "")
    if offered and not chosen:
        return Response(400, (("content-type", "text/plain"),), b"unsupported protocol\n")

    async def take_over(connection: Connection) -> None:
        channels = WebChannels(WebSocket(connection), chosen)
        # As websocket.go: an empty message says that the other end is there.
        await channels.send(STDOUT if options.stdout else STDERR if options.stderr else ERROR, b"")
        await session(channels)

    return Upgrade(accept(request, chosen), take_over)


class SpdyChannels:
    def __init__(self, connection: Connection, protocol: str) -> None:
        self._connection, self._protocol = connection, protocol
        self._session = spdy.Session(client=False)
        self._channels: dict[int, int] = {}  # SPDY stream → channel
        self._streams: dict[int, int] = {}
        self._events: list[spdy.Event] = []
        self._turn = asyncio.Lock()  # frames of two writers must not mix

    async def open(self, options: StreamOptions) -> None:
        """Until the client has opened all that it asked for. Raises ConnectionError."""
        wanted = {
            ERROR: True, STDIN: options.stdin, STDOUT: options.stdout, STDERR: options.stderr,
            RESIZE: options.tty and self._protocol not in _WITHOUT_SIZES,
        }  # fmt: skip
        needed = {channel for channel, asked in wanted.items() if asked}
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                while not needed <= set(self._streams):
                    self._events += await self._read()
                    self._events = [event for event in self._events if not await self._opens(event)]
        except TimeoutError:
            raise ConnectionError("timed out waiting for client to create streams") from None

    async def _opens(self, event: spdy.Event) -> bool:
        if not isinstance(event, spdy.Opened):
            return False
        channel = _NAMES.get(event.headers.get("streamtype", ""))
        if channel is not None:
            self._channels[event.stream], self._streams[channel] = channel, event.stream
            await self._write(self._session.reply(event.stream))
        return True

    async def _read(self) -> list[spdy.Event]:
        data = await self._connection.read()
        if not data:
            raise ConnectionError("the client is gone")
        return self._session.feed(data)

    async def receive(self) -> Arrived | None:
        while True:
            try:
                while not self._events:
                    self._events = await self._read()
            except ConnectionError:
                return None
            event = self._events.pop(0)
            match event:
                case spdy.Data(stream, payload, fin) if stream in self._channels:
                    return Arrived(self._channels[stream], payload, fin)
                case spdy.Reset(stream) if stream in self._channels:
                    return Arrived(self._channels[stream], b"", closed=True)
                case spdy.Ping() if not self._session.is_answer(event):
                    await self._write(self._session.ping(event.number))
                case spdy.GoAway():
                    return None

    async def send(self, channel: int, payload: bytes) -> None:
        if channel in self._streams:
            await self._write(self._session.data(self._streams[channel], payload))

    async def _write(self, data: bytes) -> None:
        async with self._turn:
            await self._connection.write(data)

    async def finish(self, status: bytes) -> None:
        told = status_for(self._protocol, status)
        frames = [self._session.data(self._streams[ERROR], told, fin=True)]
        frames += [
            self._session.data(self._streams[channel], b"", fin=True)
            for channel in (STDOUT, STDERR)
            if channel in self._streams
        ]
        await self._write(b"".join(frames))
        await _until_gone(self)
        self._connection.close()


class WebChannels:
    def __init__(self, socket: WebSocket, protocol: str) -> None:
        self._socket, self._protocol, self._base64 = socket, protocol, "base64" in protocol

    async def receive(self) -> Arrived | None:
        try:
            message = await self._socket.receive()
        except ConnectionError:
            return None
        if message is None:
            return None
        if not message:
            return Arrived(ERROR, b"")
        if self._base64:
            return Arrived(message[0] - ord("0"), base64.b64decode(message[1:]))
        if message[0] == CLOSE:
            return Arrived(message[1] if len(message) > 1 else ERROR, b"", closed=True)
        return Arrived(message[0], message[1:])

    async def send(self, channel: int, payload: bytes) -> None:
        if self._base64:
            text = bytes([channel + ord("0")]) + base64.b64encode(payload)
            await self._socket.send(text, TEXT)
        else:
            await self._socket.send(bytes([channel]) + payload, BINARY)

    async def finish(self, status: bytes) -> None:
        if told := status_for(self._protocol, status):
            await self.send(ERROR, told)
        await self._socket.close()
        await _until_gone(self)


async def _until_gone(channels: Channels) -> None:
    """The client may read on in peace: closing at once could cut off what it has not read yet."""
    try:
        async with asyncio.timeout(_FINISH_SECONDS):
            while await channels.receive() is not None:
                pass
    except (TimeoutError, ConnectionError):
        return
