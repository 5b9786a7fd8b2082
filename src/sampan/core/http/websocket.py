"""WebSockets (RFC 6455), the server's side: handshake, frames, and a socket over a Connection.

Job: `accept(request, …)` answers the handshake; `WebSocket(connection)` carries messages.
Invariant: how the bytes were split never changes what is read.
Invariant: no message grows beyond `MAX_MESSAGE_BYTES`.
Invariant: every ping is answered, and a close is answered once.
"""

import base64
import hashlib
import struct
from collections import deque
from collections.abc import Iterator

from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Connection, Headers, Request

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
NORMAL, PROTOCOL_ERROR, TOO_BIG = 1000, 1002, 1009
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class WebSocketError(ConnectionError):
    """The other side broke the rules; `code` is for the close frame."""

    def __init__(self, why: str, code: int = PROTOCOL_ERROR) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True)
class Frame:
    opcode: int
    payload: bytes
    final: bool = True


def is_websocket(request: Request) -> bool:
    tokens = request.headers.get("connection", "").lower().split(",")
    asked = request.headers.get("upgrade", "").lower() == "websocket"
    return asked and "upgrade" in (token.strip() for token in tokens)


def protocols_of(request: Request) -> list[str]:
    offered = request.headers.get("sec-websocket-protocol", "")
    return [part.strip() for part in offered.split(",") if part.strip()]


def why_not(request: Request) -> str:
    """What is wrong with a handshake; "" where nothing is."""
    if request.method != "GET":
        return "a WebSocket handshake is a GET"
    if request.headers.get("sec-websocket-version") != "13":
        return "unsupported WebSocket version"
    if not request.headers.get("sec-websocket-key"):
        return "missing Sec-WebSocket-Key"
    return ""


def accept(request: Request, protocol: str = "") -> Headers:
    """The headers of the 101."""
    digest = hashlib.sha1(request.headers["sec-websocket-key"].encode() + _GUID).digest()
    headers = [
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-accept", base64.b64encode(digest).decode()),
    ]
    return [*headers, ("sec-websocket-protocol", protocol)] if protocol else headers


def render_frame(opcode: int, payload: bytes, mask: bytes = b"") -> bytes:
    """`mask` (four bytes) is for clients; servers send without one."""
    size, marked = len(payload), 0x80 if mask else 0
    if size < 126:
        head = struct.pack(">BB", 0x80 | opcode, marked | size)
    elif size < 0x10000:
        head = struct.pack(">BBH", 0x80 | opcode, marked | 126, size)
    else:
        head = struct.pack(">BBQ", 0x80 | opcode, marked | 127, size)
    return head + mask + (mask_bytes(payload, mask) if mask else payload)


def mask_bytes(payload: bytes, mask: bytes) -> bytes:
    """XOR with the repeated mask; as one long number, because that is quick in Python."""
    size = len(payload)
    repeated = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")


class FrameReader:
    """Bytes to frames; a client's frames have to be masked."""

    def __init__(self, *, from_client: bool = True) -> None:
        self._from_client = from_client
        self._unread = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Raises WebSocketError."""
        self._unread += data
        return list(self._whole_frames())

    def _whole_frames(self) -> Iterator[Frame]:
        while len(self._unread) >= 2:
            first, second = self._unread[0], self._unread[1]
            size, at = second & 0x7F, 2
            if size >= 126:
                width = 2 if size == 126 else 8
                if len(self._unread) < 2 + width:
                    return
                size, at = int.from_bytes(self._unread[2 : 2 + width], "big"), 2 + width
            _check(first, second, size, self._from_client)
            mask_at, at = at, at + (4 if second & 0x80 else 0)
            if len(self._unread) < at + size:
                return
            mask = bytes(self._unread[mask_at:at])
            payload = bytes(self._unread[at : at + size])
            del self._unread[: at + size]
            opened = mask_bytes(payload, mask) if mask else payload
            yield Frame(first & 0x0F, opened, bool(first & 0x80))


def _check(first: int, second: int, size: int, from_client: bool) -> None:
    opcode = first & 0x0F
    if first & 0x70:
        raise WebSocketError("reserved bits are set")
    if opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
        raise WebSocketError(f"unknown opcode {opcode}")
    if opcode >= CLOSE and (size > 125 or not first & 0x80):
        raise WebSocketError("a control frame must be short and whole")
    if bool(second & 0x80) != from_client:
        raise WebSocketError("masking is for clients, and for all of them")
    if size > MAX_MESSAGE_BYTES:
        raise WebSocketError("message too big", TOO_BIG)


class WebSocket:
    """Messages over a connection. One receiver; any number of senders (a frame is one write)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._reader = FrameReader()
        self._frames: deque[Frame] = deque()
        self._message: bytearray | None = None  # the fragments so far
        self._close_sent = False

    async def receive(self) -> bytes | None:
        """The next message, text or binary; None when the other side closed.
        Raises ConnectionError."""
        while (frame := await self._next_frame()) is not None:
            message = await self._take(frame)
            if message is not None:
                return message
            if frame.opcode == CLOSE:
                break
        return None

    async def send(self, payload: bytes, opcode: int = BINARY) -> None:
        """Raises ConnectionError, also where a close was sent, after which no message may come."""
        if self._close_sent and opcode in (TEXT, BINARY):
            raise WebSocketError("closed already")
        await self._connection.write(render_frame(opcode, payload))

    async def close(self, code: int = NORMAL, why: str = "") -> None:
        """Say that we send no more. The connection stays until the other side has answered."""
        if not self._close_sent:
            self._close_sent = True
            await self.send(struct.pack(">H", code) + why.encode()[:120], CLOSE)

    async def _next_frame(self) -> Frame | None:
        while not self._frames:
            data = await self._connection.read()
            if not data:
                return None
            try:
                self._frames.extend(self._reader.feed(data))
            except WebSocketError as error:
                await self.close(error.code, str(error))
                raise
        return self._frames.popleft()

    async def _take(self, frame: Frame) -> bytes | None:
        """A whole message, where this frame completes one."""
        if frame.opcode == PING:
            await self.send(frame.payload, PONG)
        elif frame.opcode == CLOSE:
            await self.close()
        elif frame.opcode != PONG:
            try:
                return self._join(frame)
            except WebSocketError as error:
                await self.close(error.code, str(error))
                raise
        return None

    def _join(self, frame: Frame) -> bytes | None:
        if (frame.opcode == CONTINUATION) != (self._message is not None):
            raise WebSocketError("a continuation of nothing, or a message inside another")
        if frame.final and self._message is None:
            return frame.payload
        whole = self._message = self._message or bytearray()
        whole += frame.payload
        if len(whole) > MAX_MESSAGE_BYTES:
            raise WebSocketError("message too big", TOO_BIG)
        if not frame.final:
            return None
        self._message = None
        return bytes(whole)


class MessagesAsBytes:
    """A Connection whose bytes travel as binary messages: another protocol in a tunnel."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._socket = WebSocket(connection)

    async def read(self) -> bytes:
        while (message := await self._socket.receive()) is not None:
            if message:  # an empty one would be taken for the end
                return message
        return b""

    async def write(self, data: bytes) -> None:
        await self._socket.send(data)

    def write_eof(self) -> bool:
        return False  # a WebSocket closes as a whole

    def close(self) -> None:
        self._connection.close()
