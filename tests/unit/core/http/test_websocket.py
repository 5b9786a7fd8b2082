"""WebSocket frames, messages and the handshake."""

import asyncio
import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.http.messages import Request
from sampan.core.http.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Frame,
    FrameReader,
    MessagesAsBytes,
    WebSocket,
    WebSocketError,
    accept,
    is_websocket,
    mask_bytes,
    protocols_of,
    render_frame,
    why_not,
)

MASK = b"\x12\x34\x56\x78"


class Wire:
    """A connection whose other end is a test: what it will say is known beforehand."""

    def __init__(self, *incoming: bytes) -> None:
        self._incoming = list(incoming)
        self.sent = b""
        self.closed = False

    async def read(self) -> bytes:
        return self._incoming.pop(0) if self._incoming else b""

    async def write(self, data: bytes) -> None:
        self.sent += data

    def write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def frames(self) -> list[Frame]:
        return FrameReader(from_client=False).feed(self.sent)


def from_client(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    frame = render_frame(opcode, payload, MASK)
    return frame if final else bytes([frame[0] & 0x7F]) + frame[1:]


def received(*incoming: bytes) -> tuple[list[bytes], Wire]:
    async def story() -> tuple[list[bytes], Wire]:
        wire = Wire(*incoming)
        socket = WebSocket(wire)
        messages = []
        while (message := await socket.receive()) is not None:
            messages.append(message)
        return messages, wire

    return asyncio.run(story())


def test_the_handshake_of_the_rfc():
    headers = {
        "connection": "keep-alive, Upgrade",
        "upgrade": "WebSocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-protocol": "v5.channel.k8s.io, v4.channel.k8s.io",
    }
    request = Request("GET", "/", "", headers)
    assert is_websocket(request)
    assert why_not(request) == ""
    assert protocols_of(request) == ["v5.channel.k8s.io", "v4.channel.k8s.io"]
    answer = dict(accept(request, "v5.channel.k8s.io"))
    assert answer["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert answer["sec-websocket-protocol"] == "v5.channel.k8s.io"
    assert why_not(Request("POST", "/", "", headers)) != ""
    assert why_not(Request("GET", "/", "", {**headers, "sec-websocket-version": "8"})) != ""
    assert why_not(Request("GET", "/", "", {**headers, "sec-websocket-key": ""})) != ""


@given(st.binary(max_size=70_000), st.binary(min_size=4, max_size=4))
def test_masking_twice_changes_nothing(payload, mask):
    assert mask_bytes(mask_bytes(payload, mask), mask) == payload
    assert mask_bytes(payload[:9], mask) == bytes(
        byte ^ mask[at % 4] for at, byte in enumerate(payload[:9])
    )


@given(
    st.lists(
        st.tuples(st.sampled_from([TEXT, BINARY, PING]), st.sampled_from([0, 5, 125, 126, 70_000]))
    ),
    st.data(),
)
def test_any_split_of_the_bytes_gives_the_same_frames(wanted, data):
    wanted = [(op, min(size, 125) if op == PING else size) for op, size in wanted]
    stream = b"".join(from_client(op, bytes(size)) for op, size in wanted)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    reader, frames = FrameReader(), []
    for a, b in itertools.pairwise([0, *cuts, len(stream)]):
        frames += reader.feed(stream[a:b])
    assert frames == [Frame(op, bytes(size)) for op, size in wanted]


def test_fragments_are_joined_and_control_frames_may_come_between():
    messages, wire = received(
        from_client(BINARY, b"one ", final=False),
        from_client(PING, b"still there?"),
        from_client(CONTINUATION, b"two ", final=False),
        from_client(CONTINUATION, b"three"),
        from_client(TEXT, b""),
        from_client(CLOSE, struct.pack(">H", 1000)),
    )
    assert messages == [b"one two three", b""]
    assert [frame.opcode for frame in wire.frames()] == [PONG, CLOSE]
    assert wire.frames()[0].payload == b"still there?"


def test_a_connection_that_just_ends_is_an_end():
    messages, wire = received(from_client(BINARY, b"x"))
    assert messages == [b"x"]
    assert wire.sent == b""


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (render_frame(BINARY, b"not masked"), 1002),
        (from_client(0x3, b"unknown opcode"), 1002),
        (bytes([0xC2, 0x80]) + MASK, 1002),  # a reserved bit
        (from_client(PING, b"x" * 126), 1002),
        (from_client(CONTINUATION, b"of nothing"), 1002),
        (from_client(BINARY, b"a", final=False) + from_client(BINARY, b"b"), 1002),
        (bytes([0x82, 0xFF]) + (1 << 40).to_bytes(8, "big"), 1009),
    ],
)
def test_who_breaks_the_rules_is_told_why(bad, code):
    async def story():
        wire = Wire(bad)
        with pytest.raises(WebSocketError):
            await WebSocket(wire).receive()
        (close,) = wire.frames()
        assert (close.opcode, struct.unpack(">H", close.payload[:2])[0]) == (CLOSE, code)

    asyncio.run(story())


def test_a_close_is_said_once():
    async def story():
        wire = Wire(from_client(CLOSE, b""))
        socket = WebSocket(wire)
        await socket.close()
        assert await socket.receive() is None
        assert len(wire.frames()) == 1

    asyncio.run(story())


def test_after_a_close_no_message_is_sent_but_a_ping_answered():
    async def story():
        wire = Wire(from_client(CLOSE, b""), from_client(PING, b"there?"))
        socket = WebSocket(wire)
        assert await socket.receive() is None
        with pytest.raises(ConnectionError):
            await socket.send(b"late", TEXT)
        assert await socket.receive() is None
        assert [frame.opcode for frame in wire.frames()] == [CLOSE, PONG]

    asyncio.run(story())


def test_a_tunnel_carries_bytes_and_no_empty_reads():
    async def story():
        wire = Wire(from_client(BINARY, b""), from_client(BINARY, b"in"))
        tunnel = MessagesAsBytes(wire)
        assert await tunnel.read() == b"in"
        assert await tunnel.read() == b""
        await tunnel.write(b"out")
        assert wire.frames() == [Frame(BINARY, b"out")]
        assert not tunnel.write_eof()
        tunnel.close()
        assert wire.closed

    asyncio.run(story())
