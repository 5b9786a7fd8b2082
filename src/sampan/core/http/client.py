"""An HTTP/1.1 client: a small pool of kept connections per origin.

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

from sampan.core import tls
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.errors import (
    REPEATABLE,
    AddressNotAllowed,
    DialTimeout,
    HttpError,
    HttpTimeout,
    Stale,
    Unreachable,
)
from sampan.core.http.link import HEAD_BYTES, Link
from sampan.core.http.messages import Headers
from sampan.core.http.origin import Origin, Url, split_url
from sampan.core.http.raw_connection import RawConnection
from sampan.core.virtual_time.machine_time import abroad

IDLE_PER_ORIGIN = 25  # as client-go's transport
ANSWER_BYTES = 256 * 1024 * 1024  # a whole answer that is larger must be asked for as a stream
TLS_SHUTDOWN_SECONDS = 2.0


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


class ClientStream:
    """An answer that is still arriving. Iterate it to its end or `aclose` it."""

    def __init__(self, client: "HttpClient", link: Link) -> None:
        self.status, self.headers, self.cookies = link.status, link.headers, link.cookies
        self._client = client
        self._link: Link | None = link  # None once it went back: it may be another's by now

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


# (certificates in DER, the server's own first; host). Raises OSError.
PeerCheck = Callable[[list[bytes], str], None]


class HttpClient:
    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        connect_seconds: float = 10.0,
        server_hostname: str | None = None,
        checks: PeerCheck | None = None,
        allows: Callable[[str], bool] | None = None,
        place_of: Callable[[Origin], Awaitable[Origin]] | None = None,
        unix_path: str = "",
    ) -> None:
        """`server_hostname`: whom the certificate must name, where that is not the URL's host.
        `checks`: who judges the server's certificates, where the context does not.
        `allows`: which addresses may be connected to, asked after names are resolved. `place_of`:
        where a server is really found, of those whose address is none. `unix_path`: the one socket
        that all connections lead to, without TLS, whatever host a URL names."""
        self._unix_path = unix_path
        self._place_of = place_of
        self._ssl = ssl_context
        self._connect_seconds = connect_seconds
        self._server_hostname = server_hostname
        self._checks = checks
        self._allows = allows
        self._idle: dict[Origin, deque[Link]] = {}
        self._links: set[Link] = set()
        self._closed = False

    async def request(
        self,
        method: str,
        url: Url,
        *,
        headers: Headers = (),
        body: bytes = b"",
        timeout_seconds: float | None = 30.0,
        most_bytes: int = ANSWER_BYTES,
    ) -> ClientResponse:
        async with _Deadline(timeout_seconds, method, url):
            link = await self._exchange(method, url, headers, body)
            try:
                whole = await link.rest_of_body(most_bytes)
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
        origin, _ = split_url(url)
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
    ) -> Link:
        """Send, and wait for the head of the answer."""
        origin, target = split_url(url)
        message = _render_request(method, target, origin, headers, body)
        # Before the 101 nothing is begun that a second try would begin twice.
        kept = self._kept_link(origin)
        if kept is not None:
            try:
                return await self._ask(kept, method, message, upgrading)
            except Stale:
                if method not in REPEATABLE and not upgrading:
                    raise
        return await self._ask(await self._connect(origin), method, message, upgrading)

    async def _ask(self, link: Link, method: str, message: bytes, upgrading: bool) -> Link:
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

    def _kept_link(self, origin: Origin) -> Link | None:
        links = self._idle.get(origin)
        while links:
            link = links.pop()  # the youngest: the least likely to be stale
            if link.reusable:
                return link
        return None

    def give_back(self, link: Link) -> None:
        """After the exchange: keep the connection if it can carry another one, else end it."""
        idle = self._idle.setdefault(link.origin, deque())
        if not link.reusable or self._closed or len(idle) >= IDLE_PER_ORIGIN:
            link.abort()
        elif link not in idle:
            idle.append(link)

    def _forget(self, link: Link) -> None:
        self._links.discard(link)
        idle = self._idle.get(link.origin)
        if idle is not None:
            if link in idle:
                idle.remove(link)
            if not idle:
                del self._idle[link.origin]

    async def _connect(self, origin: Origin) -> Link:
        if self._closed:
            raise HttpError("the client is closed")
        try:
            async with asyncio.timeout(self._connect_seconds):
                link = await self._dial(origin)
        except AddressNotAllowed:
            raise
        except TimeoutError as error:
            raise DialTimeout(f"dial {origin.host}:{origin.port}: no connection in time") from error
        except OSError as error:
            raise Unreachable(f"dial {origin.host}:{origin.port}: {error}") from error
        self._links.add(link)
        return link

    async def _dial(self, origin: Origin) -> Link:
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        if self._unix_path:
            _, link = await loop.create_unix_connection(
                lambda: Link(self._forget, origin), self._unix_path
            )
            return link
        encrypted = origin.scheme == "https"
        if encrypted and self._ssl is None:
            self._ssl = tls.client_context()
        place = origin if self._place_of is None else await self._place_of(origin)
        host = self._server_hostname or place.host
        transport, link = await loop.create_connection(
            lambda: Link(self._forget, origin),
            await self._address_of(place),
            place.port,
            ssl=self._ssl if encrypted else None,
            server_hostname=host if encrypted else None,
            ssl_shutdown_timeout=TLS_SHUTDOWN_SECONDS if encrypted else None,
        )
        if encrypted and self._checks is not None:
            try:  # before anything is sent
                self._checks(tls.shown_chain(transport.get_extra_info("ssl_object")), host)
            except OSError:
                link.abort()
                raise
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
        self._abroad = abroad(url)
        self._what = f"{method} {url}: no answer within {seconds} s"

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._abroad.__enter__()

    async def __aexit__(self, *raised: object) -> None:
        self._abroad.__exit__(None, None, None)
        try:
            await self._timeout.__aexit__(*raised)  # type: ignore[arg-type]  # passed on as it came
        except TimeoutError as error:
            raise HttpTimeout(self._what) from error


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
