"""Requests, responses and limits of HTTP as values; no library, no socket.

Job: requests, replies and raw connections as values.
Invariant: header names are lower case; repeated headers are joined with ", ", and the lines of
    their own are kept: what says who somebody is must not be read out of a joined text.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from sampan.core.fast_dataclass import dataclass

Headers = Sequence[tuple[str, str]]


class Connection(Protocol):
    """Raw bytes both ways, after an upgrade."""

    async def read(self) -> bytes:
        """What has arrived, at least one byte; b"" when the other side will send no more."""

    async def write(self, data: bytes) -> None:
        """Returns when the data is on its way and the buffer has room again.
        Raises ConnectionError when the other side is gone."""

    def write_eof(self) -> bool:
        """We will send no more. False where the transport cannot say so (TLS cannot)."""

    def close(self) -> None: ...


# Of a large answer, at once. Measured over TLS on loopback: half of it or twice as much is slower.
STEP_BYTES = 128 * 1024


NOT_REPEATED: Mapping[str, Sequence[str]] = {}


@dataclass(slots=True)
class Request:
    method: str
    path: str  # as sent, still percent-encoded, without the query
    query: str  # as sent, without the "?"
    headers: Mapping[str, str]
    body: bytes = b""
    body_too_large: bool = False  # the body was not read; answer, then the connection closes
    peer_certificate: bytes | None = None  # DER, verified against the server's client CA
    remote: str = ""  # address of the other side
    repeated: Mapping[str, Sequence[str]] = NOT_REPEATED  # headers of several lines, by name
    caller: str = ""  # its name, from a listener that knows who connects to it; never from a header
    known_as: str = ""  # who asks, set by who has found that out; else it is nobody's

    def values(self, name: str) -> Sequence[str]:
        """One for each line; a comma is part of its value."""
        found = self.headers.get(name)
        return () if found is None else self.repeated.get(name) or (found,)


class Pieces(Protocol):
    """A large body that is put together while it is written: what a copy of it all would cost is
    never paid, and the client reads one piece while the next is made. It is sent in chunks."""

    about_bytes: int  # of all pieces; how many exactly is known when they are there

    def __iter__(self) -> Iterator[bytes]: ...


@dataclass(slots=True)
class Response:
    status: int
    headers: Headers = ()
    body: bytes = b""
    # Called once a large answer is written, or cannot be.
    sent: Callable[[], None] | None = None
    pieces: Pieces | None = None  # instead of `body`

    def about_bytes(self) -> int:
        return len(self.body) if self.pieces is None else self.pieces.about_bytes

    def whole(self) -> bytes:
        return self.body if self.pieces is None else b"".join(self.pieces)


@dataclass(slots=True)
class Stream:
    """A chunked answer. `chunks` is closed (aclose) when it ends, when the client goes away and
    when the server stops; a clean end of `chunks` is a clean end of the answer, a ConnectionError
    breaks the answer off."""

    status: int
    headers: Headers
    chunks: AsyncIterator[bytes]
    length: int | None = None  # of all chunks, where it is known: the answer says so


@dataclass(slots=True)
class Upgrade:
    """101 with `headers`, then `take_over` owns the connection until it returns."""

    headers: Headers
    take_over: Callable[[Connection], Awaitable[None]]
    status: int = field(default=101)
    # Called once it is over, or could not begin.
    ended: Callable[[], None] | None = None


Reply = Response | Stream | Upgrade
Handler = Callable[[Request], Awaitable[Reply]]
# The head of a request that has a large body → whether to read that.
WantsBody = Callable[[Request], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Limits:
    body_bytes: int = 3 * 1024 * 1024
    header_bytes: int = 64 * 1024
    header_seconds: float = 10.0  # from the first byte to the whole head
    body_seconds: float = 60.0
    idle_seconds: float = 90.0  # keep-alive without a request
    pending_bytes: int = 64 * 1024  # unsent bytes at which a stream's writer waits
    unsent_bytes: int = 64 * 1024 * 1024  # of all clients that read too slowly, together
    asked_bytes: int = 64 * 1024  # of a body; for more of it, its sender is looked at first
    connections: int = 16_384
    connections_per_client: int = 8_192  # a client is an address: it may be many behind one
    # Of those, connections by which nobody has said yet who they are.
    strangers: int = 1_024
    strangers_per_client: int = 512
    silent: int = 2_048  # connections before TLS that wait for the first byte
    silent_per_client: int = 512
    handshakes: int = 256
    handshakes_per_client: int = 128
    bodies_bytes: int = 512 * 1024 * 1024  # of requests that are still arriving
    bodies_bytes_per_client: int = 256 * 1024 * 1024
