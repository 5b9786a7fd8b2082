"""WebSocket on the client's side, SPDY/3.1 on the node's: exec, attach and port-forward.

Job: `v5.channel.k8s.io` messages become SPDY streams and back; port-forward's SPDY travels inside a
    WebSocket as it is.
Invariant: bytes of one stream keep their order; a closed stdin becomes a half-closed stream.
Invariant: the client gets one status on the error channel, and nothing after it.
"""

import asyncio
from collections.abc import Awaitable, Callable

import orjson

from sampan.api.errors import ApiError, BadRequest, InternalError
from sampan.core.fast_dataclass import dataclass
from sampan.core.http import spdy
from sampan.core.http.client import Upgraded
from sampan.core.http.errors import HttpError
from sampan.core.http.messages import Connection, Reply, Request, Response, Upgrade
from sampan.core.http.relay import end_to_end, relay
from sampan.core.http.websocket import (
    MessagesAsBytes,
    WebSocket,
    accept,
    is_websocket,
    protocols_of,
    why_not,
)
from sampan.core.tasks import Tasks

V5 = "v5.channel.k8s.io"
SPDY = "SPDY/3.1"
TUNNEL = f"{SPDY}+"
# The newest first; none of them is v5, whose only difference is on the WebSocket side.
NODE_PROTOCOLS = (
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
)
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
STATUS_BYTES = 64 * 1024
# How long the client may take to read the rest and to close.
FINISH_SECONDS = 60.0

# Ask the node for an upgrade to SPDY with one of these protocols; raises HttpError.
ConnectNode = Callable[[tuple[str, ...]], Awaitable[Upgraded]]


@dataclass(frozen=True, slots=True)
class Wanted:
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


def wants_translation(request: Request) -> bool:
    """Only v5 can close stdin, and only we speak it; older ones the runtime speaks itself."""
    return is_websocket(request) and V5 in protocols_of(request)


def wants_tunnel(request: Request) -> bool:
    return is_websocket(request) and bool(_tunnelled_protocols(request))


def translate(request: Request, wanted: Wanted, connect: ConnectNode) -> Upgrade:
    """The handshake is answered first, and what goes wrong after it comes as a status."""
    _check(request)

    async def take_over(connection: Connection) -> None:
        await _Translation(WebSocket(connection), wanted).run(connect)

    return Upgrade(accept(request, V5), take_over)


async def tunnel(request: Request, connect: ConnectNode) -> Reply:
    """Raises HttpError."""
    _check(request)
    answer = await connect(_tunnelled_protocols(request))
    if answer.connection is None:
        return Response(answer.status, end_to_end(answer.headers), answer.body)
    far = answer.connection
    chosen = answer.headers.get("x-stream-protocol-version", "")

    async def take_over(connection: Connection) -> None:
        await relay(MessagesAsBytes(connection), far)

    return Upgrade(accept(request, f"{TUNNEL}{chosen}" if chosen else ""), take_over)


def _tunnelled_protocols(request: Request) -> tuple[str, ...]:
    return tuple(
        item.removeprefix(TUNNEL)
        for item in protocols_of(request)
        if item.startswith(TUNNEL) and item.endswith(".k8s.io")
    )


def _check(request: Request) -> None:
    wrong = why_not(request)
    if wrong:
        raise BadRequest(wrong)


class _Translation:
    """One session. Its own task copies what comes from the node, a second one what goes there."""

    def __init__(self, socket: WebSocket, wanted: Wanted) -> None:
        self._socket, self._wanted = socket, wanted
        self._session = spdy.Session()
        self._channels: dict[int, int] = {}  # SPDY stream → channel
        self._streams: dict[int, int] = {}  # channel → SPDY stream
        self._status = b""

    async def run(self, connect: ConnectNode) -> None:
        outputs = ((STDOUT, self._wanted.stdout), (STDERR, self._wanted.stderr), (ERROR, True))
        # As the original: an empty message tells the client that the connection stands.
        await self._socket.send(bytes([next(channel for channel, open_ in outputs if open_)]))
        try:
            node = await open_connection(connect, NODE_PROTOCOLS)
        except ApiError as error:
            await self._finish(orjson.dumps(error.status()))
            return
        tasks = Tasks("exec stream")
        try:
            await self._open_streams(node)
            tasks.start("to the node", self._copy_to_node(node))
            status = await self._copy_from_node(node)
        finally:
            await tasks.stop()
            node.close()
        await self._finish(status)

    async def _open_streams(self, node: Connection) -> None:
        """In client-go's order; the runtime waits until it has as many as it expects."""
        frames = []
        for channel, kind, needed in (
            (ERROR, "error", True),
            (STDIN, "stdin", self._wanted.stdin),
            (STDOUT, "stdout", self._wanted.stdout),
            (STDERR, "stderr", self._wanted.stderr and not self._wanted.tty),
            (RESIZE, "resize", self._wanted.tty),
        ):
            if needed:
                stream, frame = self._session.open({"streamtype": kind})
                self._channels[stream], self._streams[channel] = channel, stream
                frames.append(frame)
        await node.write(b"".join(frames))

    async def _copy_to_node(self, node: Connection) -> None:
        """Until the client leaves; then the node's side is closed too."""
        try:
            while (message := await self._socket.receive()) is not None:
                frame = self._frame_for(message)
                if frame:
                    await node.write(frame)
        except ConnectionError:
            return  # one of the two is gone; the other direction finds out which
        finally:
            node.close()

    def _frame_for(self, message: bytes) -> bytes:
        channel = message[0] if message else ERROR
        if channel == CLOSE:
            stream = self._streams.pop(message[1], None) if message[1:] == bytes([STDIN]) else None
            return b"" if stream is None else self._session.data(stream, b"", fin=True)
        if channel not in (STDIN, RESIZE) or channel not in self._streams:
            return b""
        return self._session.data(self._streams[channel], message[1:])

    async def _copy_from_node(self, node: Connection) -> bytes:
        """The status that the client shall get."""
        open_channels = {ERROR, *({STDOUT, STDERR} & set(self._streams))}
        try:
            while open_channels and (data := await node.read()):
                for event in self._session.feed(data):
                    await self._take(event, node, open_channels)
        except ConnectionError as error:
            if not self._status:
                return orjson.dumps(_internal(f"error reading from error stream: {error}").status())
        if self._status:
            return self._status
        if ERROR in open_channels:
            why = "error reading from error stream: the connection was lost"
            return orjson.dumps(_internal(why).status())
        return orjson.dumps({"metadata": {}, "status": "Success"})

    async def _take(self, event: spdy.Event, node: Connection, open_channels: set[int]) -> None:
        match event:
            case spdy.Data(stream, payload, fin):
                channel = self._channels.get(stream)
                if channel == ERROR:
                    self._status = (self._status + payload)[:STATUS_BYTES]
                elif channel in (STDOUT, STDERR) and payload:
                    await self._socket.send(bytes([channel]) + payload)
                if fin and channel is not None:
                    open_channels.discard(channel)
            case spdy.Reset(stream):
                # The runtime resets what it is done with, after its last word.
                open_channels.discard(self._channels.get(stream, ERROR))
            case spdy.Ping() if not self._session.is_answer(event):
                await node.write(self._session.ping(event.number))

    async def _finish(self, status: bytes) -> None:
        """The status, then the close; and then the client may read on in peace: closing at once
        could cut off what it has not read yet."""
        await self._socket.send(bytes([ERROR]) + status)
        await self._socket.close()
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                while await self._socket.receive() is not None:
                    pass
        except TimeoutError:
            return


async def open_connection(connect: ConnectNode, protocols: tuple[str, ...]) -> Connection:
    """Raises ApiError, for the client's eyes."""
    try:
        answer = await connect(protocols)
    except HttpError as error:
        raise _internal(f"error dialing backend: {error}") from error
    if answer.connection is None:
        raise _refusal(answer)
    return answer.connection


def _internal(why: str) -> InternalError:
    message = f"Internal error occurred: {why}"
    return InternalError(message, details={"causes": [{"message": why}]})


def _refusal(answer: Upgraded) -> ApiError:
    text = answer.body.decode(errors="replace").strip()
    return _internal(f"unable to upgrade connection: {text or answer.status}")
