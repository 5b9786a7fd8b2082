"""SPDY/3.1 frames, as Kubernetes' streaming protocols use them: no sockets, no flow control.

Job: `Session` writes frames of one side and reads those of the other.
Invariant: frames leave in the order in which they were made: header blocks share one compressor.
Invariant: how the bytes were split never changes what is read.

The peers (kubectl, containerd, CRI-O: all spdystream) send no window updates and heed none, so
neither do we: backpressure is the connection's own.
"""

import struct
import zlib
from collections.abc import Mapping

from sampan.core.fast_dataclass import dataclass

MAX_DATA_BYTES = 32 * 1024  # per data frame that we send
MAX_FRAME_BYTES = 1 << 24  # the length field's own bound
MAX_HEADER_BYTES = 64 * 1024  # of one header block, unpacked

_VERSION = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY, _HEADERS = 1, 2, 3, 6, 7, 8
_FIN = 0x01
_WORDS = """options head post put delete trace accept accept-charset accept-encoding
accept-language accept-ranges age allow authorization cache-control connection content-base
content-encoding content-language content-length content-location content-md5 content-range
content-type date etag expect expires from host if-match if-modified-since if-none-match if-range
if-unmodified-since last-modified location max-forwards pragma proxy-authenticate
proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade
user-agent vary via warning www-authenticate method get status"""
_PHRASES = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_TAIL = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, "
    "Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


class SpdyError(ConnectionError):
    """The other side does not speak SPDY/3.1."""


@dataclass(frozen=True, slots=True)
class Opened:
    stream: int
    headers: Mapping[str, str]
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Replied:
    stream: int
    headers: Mapping[str, str]
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Data:
    stream: int
    payload: bytes
    fin: bool = False  # the other side will send no more on this stream


@dataclass(frozen=True, slots=True)
class Reset:
    stream: int
    status: int


@dataclass(frozen=True, slots=True)
class Ping:
    """To be answered with `pong` where it is not an answer itself."""

    number: int


@dataclass(frozen=True, slots=True)
class GoAway:
    last_stream: int


Event = Opened | Replied | Data | Reset | Ping | GoAway


def dictionary() -> bytes:
    """What both sides' compressors start from (draft 3, 2.6.10.1)."""
    words = (*_WORDS.split(), *_PHRASES)
    return b"".join(len(w).to_bytes(4, "big") + w.encode() for w in words) + _TAIL.encode()


class Session:
    """Both directions of one connection; `client` opens streams with odd numbers."""

    def __init__(self, *, client: bool = True) -> None:
        known = dictionary()
        self._packer = zlib.compressobj(zdict=known)
        self._unpacker = zlib.decompressobj(zdict=known)
        self._next_stream = 1 if client else 2
        self._client = client
        self._unread = b""

    # Writing: each gives the bytes to send.

    def open(self, headers: Mapping[str, str], *, fin: bool = False) -> tuple[int, bytes]:
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        block = struct.pack(">IIBB", stream, 0, 0, 0) + self._pack(headers)
        return stream, _control(_SYN_STREAM, _FIN if fin else 0, block)

    def reply(self, stream: int, headers: Mapping[str, str] | None = None) -> bytes:
        return _control(_SYN_REPLY, 0, struct.pack(">I", stream) + self._pack(headers or {}))

    def data(self, stream: int, payload: bytes, *, fin: bool = False) -> bytes:
        """One frame, or several where the payload is long; none where there is nothing to say."""
        pieces = [
            payload[at : at + MAX_DATA_BYTES] for at in range(0, len(payload), MAX_DATA_BYTES)
        ]
        if fin and not pieces:
            pieces = [b""]
        return b"".join(
            struct.pack(">II", stream, ((_FIN if fin and last else 0) << 24) | len(piece)) + piece
            for last, piece in ((at == len(pieces) - 1, piece) for at, piece in enumerate(pieces))
        )

    def reset(self, stream: int, status: int = 5) -> bytes:
        return _control(_RST_STREAM, 0, struct.pack(">II", stream, status))

    def ping(self, number: int) -> bytes:
        return _control(_PING, 0, struct.pack(">I", number))

    def is_answer(self, ping: Ping) -> bool:
        """Each side numbers its own pings: ours are odd where we are the client."""
        return (ping.number % 2 == 1) == self._client

    # Reading.

    def feed(self, data: bytes) -> list[Event]:
        """Every frame that is whole now. Raises SpdyError."""
        self._unread += data
        events: list[Event] = []
        at = 0
        while len(self._unread) - at >= 8:
            first, second = struct.unpack_from(">II", self._unread, at)
            size = second & 0xFFFFFF
            if len(self._unread) - at - 8 < size:
                break
            body = self._unread[at + 8 : at + 8 + size]
            event = self._event(first, second >> 24, body)
            if event is not None:
                events.append(event)
            at += 8 + size
        self._unread = self._unread[at:]
        return events

    def _event(self, first: int, flags: int, body: bytes) -> Event | None:
        if not first >> 31:
            return Data(first, body, bool(flags & _FIN))
        if (first >> 16) & 0x7FFF != _VERSION:
            raise SpdyError(f"SPDY version {(first >> 16) & 0x7FFF}")
        try:
            return self._control_event(first & 0xFFFF, bool(flags & _FIN), body)
        except (struct.error, zlib.error, IndexError) as error:
            raise SpdyError(f"malformed SPDY frame: {error}") from error

    def _control_event(self, kind: int, fin: bool, body: bytes) -> Event | None:
        # Settings, window updates and what is newer than this are nothing to us; but every header
        # block has to be unpacked, or the ones after it cannot be.
        number = struct.unpack_from(">I", body)[0] & 0x7FFFFFFF
        if kind == _SYN_STREAM:
            return Opened(number, self._unpack(body[10:]), fin)
        if kind == _SYN_REPLY:
            return Replied(number, self._unpack(body[4:]), fin)
        if kind == _HEADERS:
            self._unpack(body[4:])
            return Data(number, b"", True) if fin else None
        if kind == _RST_STREAM:
            return Reset(number, struct.unpack_from(">I", body, 4)[0])
        if kind == _PING:
            return Ping(struct.unpack_from(">I", body)[0])
        if kind == _GOAWAY:
            return GoAway(number)
        return None

    def _pack(self, headers: Mapping[str, str]) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for name, value in headers.items():
            for text in (name.lower().encode(), value.encode()):
                parts += [struct.pack(">I", len(text)), text]
        return self._packer.compress(b"".join(parts)) + self._packer.flush(zlib.Z_SYNC_FLUSH)

    def _unpack(self, block: bytes) -> dict[str, str]:
        plain = self._unpacker.decompress(block, MAX_HEADER_BYTES)
        if self._unpacker.unconsumed_tail:
            raise SpdyError("header block too large")
        (count,) = struct.unpack_from(">I", plain)
        at, texts = 4, list[str]()
        for _ in range(min(count, len(plain)) * 2):
            (size,) = struct.unpack_from(">I", plain, at)
            if len(plain) < at + 4 + size:
                raise SpdyError("header block ends too early")
            texts.append(plain[at + 4 : at + 4 + size].decode(errors="replace"))
            at += 4 + size
        return {
            name.lower(): value.replace("\0", ", ")
            for name, value in zip(texts[::2], texts[1::2], strict=True)
        }


def _control(kind: int, flags: int, body: bytes) -> bytes:
    assert len(body) < MAX_FRAME_BYTES
    return struct.pack(">HHI", 0x8000 | _VERSION, kind, flags << 24 | len(body)) + body
