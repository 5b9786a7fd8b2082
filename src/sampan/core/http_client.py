"""An HTTP/1.1 client: a small pool of kept connections per origin, httptools inside.

Job: send a request, give back the answer whole, as a stream, or as a raw connection.
Invariant: a connection carries one exchange at a time, and is kept only after a whole answer.
Invariant: whatever goes wrong below is raised as HttpError; redirects are not followed.
Owner: the HttpClient owns its idle connections; a running exchange belongs to its caller.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import cast
from urllib.parse import urlsplit

import httptools

from sampan.core import tls
from sampan.core.fast_dataclass import dataclass
from sampan.core.http import Headers
from sampan.core.http_wire import has_no_body, name_of_header
from sampan.core.raw_connection import READ_AHEAD, RawConnection, probe_silent_peers

IDLE_PER_ORIGIN = 25  # as client-go's transport
ANSWER_BYTES = 256 * 1024 * 1024  # a whole answer that is larger must be asked for as a stream
HEAD_BYTES = 1024 * 1024  # as net/http's client
TLS_SHUTDOWN_SECONDS = 2.0
# Those that may be sent twice when a kept connection turns out to be dead (as net/http).
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})


class HttpError(ConnectionError):
    """There is no answer: no connection, a broken one, or something that is not HTTP."""


class AddressNotAllowed(HttpError):
    """This client may not connect there."""


class HttpTimeout(HttpError, TimeoutError):
    """There is no answer yet, and there was no more time."""


class _Stale(HttpError):
    """A kept connection was closed before any byte of the answer came."""


@dataclass(frozen=True, slots=True)
class ClientResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Upgraded:
    """`connection` after a 101; otherwise None, and `body` says why."""

    status: int
    headers: Mapping[str, str]
    connection: RawConnection | None
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Origin:
    """A server: whom a connection leads to."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port, as a URL and a Host header have them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        standard = self.port == (443 if self.scheme == "https" else 80)
        return host if standard else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Target:
    """A URL in parts: nothing in `path` can change which server is meant."""

    origin: Origin
    path: str  # encoded, with its query

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"


Url = str | Target


class ClientStream:
    """An answer that is still arriving. Iterate it to its end or `aclose` it."""

    def __init__(self, client: "HttpClient", link: "_Link") -> None:
        self.status, self.headers = link.status, link.headers
        self._client = client
        self._link: _Link | None = link  # None once it went back: it may be another's by now

    def __aiter__(self) -> "ClientStream":
        return self

    async def __anext__(self) -> bytes:
        chunk = b"" if self._link is None else await self._link.next_chunk()
        if not chunk:
            await self.aclose()
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            self._client.give_back(link)


class HttpClient:
    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        connect_seconds: float = 10.0,
        server_hostname: str | None = None,
        allows: Callable[[str], bool] | None = None,
        place_of: Callable[[Origin], Awaitable[Origin]] | None = None,
        unix_path: str = "",
    ) -> None:
        """`server_hostname`: whom the certificate must name, where that is not the URL's host.
        `allows`: which addresses may be connected to, asked after names are resolved. `place_of`:
        where a server is really found, of those whose address is none. `unix_path`: the one socket
        that all connections lead to, without TLS, whatever host a URL names."""
        self._unix_path = unix_path
        self._place_of = place_of
        self._ssl = ssl_context
        self._connect_seconds = connect_seconds
        self._server_hostname = server_hostname
        self._allows = allows
        self._idle: dict[Origin, deque[_Link]] = {}
        self._links: set[_Link] = set()
        self._closed = False

    async def request(
        self,
        method: str,
        url: Url,
        *,
        headers: Headers = (),
        body: bytes = b"",
        timeout_seconds: float | None = 30.0,
    ) -> ClientResponse:
        async with _Deadline(timeout_seconds, method, url):
            link = await self._exchange(method, url, headers, body)
            try:
                whole = await link.rest_of_body(ANSWER_BYTES)
            finally:
                self.give_back(link)
        return ClientResponse(link.status, link.headers, whole)

    async def stream(
        self,
        method: str,
        url: Url,
        *,
        headers: Headers = (),
        body: bytes = b"",
        timeout_seconds: float | None = 30.0,
    ) -> ClientStream:
        """The time is for the answer's head; its chunks may take for ever."""
        async with _Deadline(timeout_seconds, method, url):
            return ClientStream(self, await self._exchange(method, url, headers, body))

    async def upgrade(
        self,
        method: str,
        url: Url,
        *,
        headers: Headers = (),
        timeout_seconds: float | None = 30.0,
    ) -> Upgraded:
        """`headers` name the protocol: Connection and Upgrade among them."""
        async with _Deadline(timeout_seconds, method, url):
            link = await self._exchange(method, url, headers, b"", upgrading=True)
            if link.upgraded:
                return Upgraded(link.status, link.headers, link.into_raw_connection())
            try:
                why = await link.rest_of_body(HEAD_BYTES)
            finally:
                self.give_back(link)
        return Upgraded(link.status, link.headers, None, why)

    async def warm(self, url: Url) -> None:
        """Have a connection at hand for the next request. Nothing is lost where that fails."""
        origin, _ = _split_url(url)
        if self._idle.get(origin) or self._closed:
            return
        try:
            self.give_back(await self._connect(origin))
        except HttpError:
            return  # the next request will say why

    async def close(self) -> None:
        """Every connection that this client still owns is closed; raw ones are their takers'."""
        self._closed = True
        links = list(self._links)
        for link in links:
            link.abort()
        for link in links:
            await link.lost

    async def _exchange(
        self, method: str, url: Url, headers: Headers, body: bytes, *, upgrading: bool = False
    ) -> "_Link":
        """Send, and wait for the head of the answer."""
        origin, target = _split_url(url)
        message = _render_request(method, target, origin, headers, body)
        # Before the 101 nothing is begun that a second try would begin twice.
        kept = self._kept_link(origin)
        if kept is not None:
            try:
                return await self._ask(kept, method, message, upgrading)
            except _Stale:
                if method not in REPEATABLE and not upgrading:
                    raise
        return await self._ask(await self._connect(origin), method, message, upgrading)

    async def _ask(self, link: "_Link", method: str, message: bytes, upgrading: bool) -> "_Link":
        answered = False
        try:
            await link.ask(method, message)
            if link.upgraded and not upgrading:
                raise HttpError("an upgrade that nobody asked for")
            answered = True
        finally:
            if not answered:
                link.abort()
        return link

    def _kept_link(self, origin: Origin) -> "_Link | None":
        links = self._idle.get(origin)
        while links:
            link = links.pop()  # the youngest: the least likely to be stale
            if link.reusable:
                return link
        return None

    def give_back(self, link: "_Link") -> None:
        """After the exchange: keep the connection if it can carry another one, else end it."""
        idle = self._idle.setdefault(link.origin, deque())
        if not link.reusable or self._closed or len(idle) >= IDLE_PER_ORIGIN:
            link.abort()
        elif link not in idle:
            idle.append(link)

    def _forget(self, link: "_Link") -> None:
        self._links.discard(link)
        idle = self._idle.get(link.origin)
        if idle is not None:
            if link in idle:
                idle.remove(link)
            if not idle:
                del self._idle[link.origin]

    async def _connect(self, origin: Origin) -> "_Link":
        if self._closed:
            raise HttpError("the client is closed")
        try:
            async with asyncio.timeout(self._connect_seconds):
                link = await self._dial(origin)
        except AddressNotAllowed:
            raise
        except TimeoutError as error:
            raise HttpTimeout(f"dial {origin.host}:{origin.port}: no connection in time") from error
        except OSError as error:
            raise HttpError(f"dial {origin.host}:{origin.port}: {error}") from error
        self._links.add(link)
        return link

    async def _dial(self, origin: Origin) -> "_Link":
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        if self._unix_path:
            _, link = await loop.create_unix_connection(
                lambda: _Link(self._forget, origin), self._unix_path
            )
            return link
        encrypted = origin.scheme == "https"
        if encrypted and self._ssl is None:
            self._ssl = tls.client_context()
        place = origin if self._place_of is None else await self._place_of(origin)
        _, link = await loop.create_connection(
            lambda: _Link(self._forget, origin),
            await self._address_of(place),
            place.port,
            ssl=self._ssl if encrypted else None,
            server_hostname=(self._server_hostname or place.host) if encrypted else None,
            ssl_shutdown_timeout=TLS_SHUTDOWN_SECONDS if encrypted else None,
        )
        return link

    async def _address_of(self, origin: Origin) -> str:
        """What is connected to is what was judged: a name is resolved once. Raises OSError."""
        if self._allows is None:
            return origin.host
        found = await asyncio.get_running_loop().getaddrinfo(
            origin.host, origin.port, type=socket.SOCK_STREAM
        )
        addresses = [str(entry[4][0]) for entry in found]
        if not addresses or not all(self._allows(address) for address in addresses):
            raise AddressNotAllowed("address not allowed")
        return addresses[0]


class _Deadline:
    """asyncio.timeout whose expiry says what it was that took too long."""

    def __init__(self, seconds: float | None, method: str, url: Url) -> None:
        self._timeout = asyncio.timeout(seconds)
        self._what = f"{method} {url}: no answer within {seconds} s"

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *raised: object) -> None:
        try:
            await self._timeout.__aexit__(*raised)  # type: ignore[arg-type]  # passed on as it came
        except TimeoutError as error:
            raise HttpTimeout(self._what) from error


class _Link(asyncio.Protocol):
    """One connection to a server."""

    def __init__(self, forget: "Callable[[_Link], None]", origin: Origin) -> None:
        self.origin = origin
        self._forget = forget
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._error: HttpError | None = None
        self._used = False
        self._begin("")

    def _begin(self, method: str) -> None:
        self._method = method
        self._parser = _response_parser(self)
        self.status = 0
        self.headers: dict[str, str] = {}
        self.upgraded = False
        self._leftover = b""
        self._head_bytes = 0
        self._whole = method == ""  # nothing asked, nothing outstanding
        self._keep_alive = True
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._reading_paused = False
        self._waiter: asyncio.Future[None] | None = None

    # What the client calls.

    @property
    def reusable(self) -> bool:
        return (
            self._whole
            and self._keep_alive
            and not self.upgraded
            and self._error is None
            and not self._transport.is_closing()
        )

    async def ask(self, method: str, message: bytes) -> None:
        """Until the head of the answer is here."""
        kept, self._used = self._used, True
        self._begin(method)
        self._transport.write(message)
        while self.status < 200 and not self.upgraded:
            if self._error is not None:
                nothing_came = kept and self._head_bytes == 0
                raise (_Stale(*self._error.args) if nothing_came else self._error)
            await self._wait()

    async def next_chunk(self) -> bytes:
        """What has arrived of the body; b"" at its end."""
        while not self._chunks:
            if self._whole:
                return b""
            if self._error is not None:
                raise self._error
            await self._wait()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    async def rest_of_body(self, limit: int) -> bytes:
        parts, size = [], 0
        while part := await self.next_chunk():
            size += len(part)
            if size > limit:
                raise HttpError(f"the answer is larger than {limit} bytes")
            parts.append(part)
        return b"".join(parts)

    def into_raw_connection(self) -> RawConnection:
        assert self.upgraded
        self._forget(self)
        raw = RawConnection(self._transport, self._leftover)
        self._transport.set_protocol(raw)
        self._transport.resume_reading()
        return raw

    def abort(self) -> None:
        """No goodbye: nothing that we still owe is on its way."""
        self._transport.abort()

    async def _wait(self) -> None:
        assert self._waiter is None, "one exchange at a time"
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        probe_silent_peers(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        if self.upgraded:
            self._leftover += data
            return
        if self.status < 200:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.upgraded = True
            self._leftover = data[upgrade.args[0] :]
            # An end that comes now is for whoever takes the connection over, not for us.
            self._reading_paused = True
            self._transport.pause_reading()
        except httptools.HttpParserCallbackError:
            raise  # ours, not theirs
        except httptools.HttpParserError as error:
            self._fail(HttpError(f"malformed HTTP response: {error}"))
        if self.status < 200 and self._head_bytes > HEAD_BYTES and not self.upgraded:
            self._fail(HttpError("the answer's head is too large"))
        if self._buffered > READ_AHEAD and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        until_close = self.status >= 200 and not {
            "content-length",
            "transfer-encoding",
        }.intersection(self.headers)
        if until_close:
            self._whole, self._keep_alive = True, False
            self._wake()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if error is None:
            # uvloop comes here at once when a TLS peer ends its connection without saying so.
            self.eof_received()
        if self._error is None:
            self._error = HttpError(str(error) if error else "the server closed the connection")
        if not self.lost.done():
            self.lost.set_result(None)
        self._forget(self)
        self._wake()

    def _fail(self, error: HttpError) -> None:
        if self._error is None:
            self._error = error
        self._transport.abort()

    # The parser's callbacks.

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status >= 200:
            return  # trailers
        key, text = name_of_header(name), value.decode(errors="replace")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        status: int = self._parser.get_status_code()
        if self._whole:
            # More than one answer to one request: whoever that is, it is not speaking to us.
            self._fail(HttpError("an answer that nobody asked for"))
            return
        if status < 200 and status != 101:
            self.headers = {}  # 100 Continue and the like: the answer is still to come
            return
        self.status = status
        self._keep_alive = self._parser.should_keep_alive()
        if self._method == "HEAD" or (has_no_body(status) and status != 101):
            # The parser would wait for the body that the headers announce.
            self._whole = True
            self._parser = _response_parser(self)

    def on_body(self, part: bytes) -> None:
        self._chunks.append(part)
        self._buffered += len(part)

    def on_message_complete(self) -> None:
        if self.status >= 200:
            self._whole = True


def _split_url(url: Url) -> tuple[Origin, str]:
    if isinstance(url, Target):
        return url.origin, url.path
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise HttpError(f"not an HTTP URL: {url!r}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise HttpError(f"not an HTTP URL: {url!r}")
    target = parts.path or "/"
    if parts.query:
        target = f"{target}?{parts.query}"
    return Origin(parts.scheme, parts.hostname, port), target


def _render_request(
    method: str, target: str, origin: Origin, headers: Headers, body: bytes
) -> bytes:
    names = {name.lower() for name, _ in headers}
    lines = [f"{method} {target} HTTP/1.1"]
    if "host" not in names:
        lines.append(f"host: {origin.authority}")
    lines += [f"{name}: {value}" for name, value in headers]
    if (body or method in ("POST", "PUT", "PATCH")) and "content-length" not in names:
        lines.append(f"content-length: {len(body)}")
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or " " in target:
        raise ValueError(f"line break or blank in a request: {lines!r}")
    return f"{text}\r\n\r\n".encode() + body


def _response_parser(reader: object) -> httptools.HttpResponseParser:
    """As lenient as Go's: a line may end without its CR. What answers probes and stands behind the
    proxy is anybody's server, a shell script among them."""
    parser = httptools.HttpResponseParser(reader)
    parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
    return parser
