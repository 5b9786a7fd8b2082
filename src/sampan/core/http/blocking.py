"""HTTP/1.1 for a process that does one thing: no event loop, and so no price for one.

Job: requests over one kept connection, and streams over connections of their own, blocking.
Invariant: every failure is an HttpFailure that says whether anybody answered at all.
Why beside core/http/client.py: a command must start in a tenth of a second, and importing asyncio
    takes half of that.
"""

import base64
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import httptools

from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.errors import REPEATABLE

Headers = Sequence[tuple[str, str]]
MOST_WAIT_SECONDS = 1e8  # three years
CHUNK_BYTES = 65536


class HttpFailure(ConnectionError):
    """No answer; `refused` when nobody listens there."""

    def __init__(self, why: str, *, refused: bool = False) -> None:
        super().__init__(why)
        self.refused = refused


class Ended(HttpFailure):
    """The server closed the connection."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    warnings: tuple[str, ...]
    body: bytes


class Stream:
    """An answer whose body comes in pieces, until the other side ends it."""

    def __init__(self, link: "_Link") -> None:
        self._link = link
        self.status = link.status
        self._deadline: float | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._link.warnings)

    @property
    def headers(self) -> Mapping[str, str]:
        return self._link.headers

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self.next_chunk():
            yield chunk

    def end_after(self, seconds: float | None) -> None:
        """From now on; what has not come until then does not come any more. None: no end, as is
        one beyond what a socket can wait for."""
        if seconds is None or seconds > MOST_WAIT_SECONDS:
            self._deadline = None
        else:
            self._deadline = time.monotonic() + seconds

    @property
    def socket(self) -> socket.socket:
        """To wait on, with others."""
        return self._link.socket

    def has_unread(self) -> bool:
        """Whether something waits that a select on the socket would not see."""
        return self._link.has_unread()

    def next_chunk(self) -> bytes:
        """What comes next; empty at the end."""
        if self._deadline is None:
            return self._link.next_chunk()
        left = self._deadline - time.monotonic()
        if left <= 0:
            return b""
        self._link.socket.settimeout(left)
        try:
            return self._link.next_chunk()
        except HttpFailure:
            if time.monotonic() < self._deadline:
                raise
            return b""

    def rest(self) -> bytes:
        return b"".join(self)

    def close(self) -> None:
        self._link.close()


class BlockingHttp:
    """One server; `context` is asked for when a TLS connection is really needed."""

    def __init__(
        self,
        server: str,
        context: Callable[[], ssl.SSLContext],
        *,
        server_name: str = "",
        proxy: str = "",
        timeout_seconds: float | None = None,
    ) -> None:
        scheme, _, rest = server.partition("://")
        self._secure = scheme == "https"
        self._authority, slash, path = rest.partition("/")
        self._host, self._port = host_and_port(self._authority, 443 if self._secure else 80)
        self._prefix = (slash + path).rstrip("/")
        self._context, self._server_name = context, server_name
        self._proxy, self._timeout_seconds = proxy, timeout_seconds
        self._kept: _Link | None = None

    def request(self, method: str, target: str, headers: Headers, body: bytes = b"") -> Answer:
        link, is_fresh = self._kept, False
        self._kept = None
        if link is not None and link.is_over():
            link.close()
            link = None
        if link is None:
            link, is_fresh = self._connect(), True
        message = self._message(method, target, headers, body)
        try:
            link.ask(message, self._timeout_seconds)
        except HttpFailure as failure:
            link.close()
            # The server may have seen it, and done it.
            if is_fresh or method not in REPEATABLE or not isinstance(failure, Ended):
                raise
            link = self._connect()
            link.ask(message, self._timeout_seconds)
        content = b"".join(iter(link.next_chunk, b""))
        answer = Answer(link.status, link.headers, tuple(link.warnings), content)
        if link.keeps_alive:
            self._kept = link
        else:
            link.close()
        return answer

    def stream(self, method: str, target: str, headers: Headers, body: bytes = b"") -> Stream:
        link = self._connect()
        link.ask(self._message(method, target, headers, body), self._timeout_seconds)
        link.socket.settimeout(None)
        return Stream(link)

    def upgrade(self, target: str, headers: Headers) -> tuple[socket.socket, Answer, bytes]:
        """The socket after a 101, or the answer that refused it; and what was read too far."""
        link = self._connect()
        link.socket.settimeout(self._timeout_seconds)
        try:
            link.socket.sendall(self._message("GET", target, headers, b""))
            head = b""
            while b"\r\n\r\n" not in head:
                part = link.socket.recv(CHUNK_BYTES)
                if not part:
                    raise OSError("EOF")
                head += part
        except OSError as error:
            link.close()
            raise HttpFailure(_why(error)) from error
        head, _, rest = head.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        status = int(lines[0].split(" ")[1])
        if status != 101:
            wanted = int(fields.get("content-length") or 0)
            while len(rest) < wanted and (part := link.socket.recv(CHUNK_BYTES)):
                rest += part
            link.close()
        else:
            link.socket.settimeout(None)
        return link.socket, Answer(status, fields, (), rest if status != 101 else b""), rest

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _connect(self) -> "_Link":
        try:
            plain = self._socket()
            if not self._secure:
                return _Link(plain)
            try:
                name = _name(self._server_name or self._host)
                return _Link(self._context().wrap_socket(plain, server_hostname=name))
            except OSError:
                plain.close()
                raise
        except ConnectionRefusedError as error:
            raise HttpFailure(str(error), refused=True) from error
        except (OSError, ssl.SSLError) as error:
            raise HttpFailure(_why(error)) from error

    def _socket(self) -> socket.socket:
        if not self._proxy:
            return self._connected((self._host, self._port))
        from urllib.parse import unquote, urlsplit

        proxy = urlsplit(self._proxy)
        address = (proxy.hostname or "", proxy.port or (443 if proxy.scheme == "https" else 3128))
        link = self._connected(address)
        if proxy.scheme == "https":
            link = ssl.create_default_context().wrap_socket(link, server_hostname=proxy.hostname)
        lines = [f"CONNECT {self._host}:{self._port} HTTP/1.1", f"Host: {self._host}:{self._port}"]
        if proxy.username:
            pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair).decode()}")
        link.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            part = link.recv(4096)
            if not part or len(answer) > CHUNK_BYTES:
                raise OSError("the proxy gave no answer")
            answer += part
        if answer.split(b" ", 2)[1] != b"200":
            raise OSError(f"the proxy refused: {answer.splitlines()[0].decode(errors='replace')}")
        return link

    def _connected(self, address: tuple[str, int]) -> socket.socket:
        link = _dialled(address, self._timeout_seconds)
        # Else the first request waits until the server acknowledges the end of the handshake, to
        # which it has nothing to say: 40 ms.
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link

    def _message(self, method: str, target: str, headers: Headers, body: bytes) -> bytes:
        lines = [f"{method} {self._prefix}{target} HTTP/1.1", f"host: {self._authority}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body or method in ("POST", "PUT", "PATCH"):
            lines.append(f"content-length: {len(body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def _dialled(address: tuple[str, int], timeout_seconds: float | None) -> socket.socket:
    """To the first of the name's addresses that answers. Else what the first one said is raised,
    in Go's words, which people search for."""
    where: Any = _name(address[0])  # a name in bytes is taken, too
    try:
        found = socket.getaddrinfo(where, address[1], 0, socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise OSError(f"dial tcp: lookup {address[0]}: no such host") from error
    failure: OSError | None = None
    for family, kind, protocol, _, place in found:
        link = socket.socket(family, kind, protocol)
        try:
            link.settimeout(timeout_seconds)
            link.connect(place)
            return link
        except OSError as error:
            link.close()
            failure = failure or _dial_failure(error, place)
    assert failure is not None, "a name has an address"
    raise failure


def _dial_failure(error: OSError, place: Any) -> OSError:
    host, port = place[0], place[1]
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(error, TimeoutError):
        return TimeoutError(f"dial tcp {shown}: i/o timeout")
    text = f"dial tcp {shown}: connect: {(error.strerror or str(error)).lower()}"
    return (
        ConnectionRefusedError(text) if isinstance(error, ConnectionRefusedError) else OSError(text)
    )


class _Link:
    """One connection, and the answer that is being read from it."""

    def __init__(self, link: socket.socket) -> None:
        self.socket = link
        self.status, self.keeps_alive, self._is_done = 0, False, False
        self.headers: dict[str, str] = {}
        self.warnings: list[str] = []
        self._chunks: list[bytes] = []

    def ask(self, message: bytes, timeout_seconds: float | None) -> None:
        """Send, and read as far as the headers."""
        self.headers, self.warnings, self._chunks = {}, [], []
        self._is_done, self._has_headers = False, False
        self._parser = httptools.HttpResponseParser(self)
        self.socket.settimeout(timeout_seconds)
        try:
            self.socket.sendall(message)
        except TimeoutError as error:
            raise HttpFailure(_why(error)) from error
        except OSError as error:
            raise Ended(_why(error)) from error
        while not self._has_headers:
            self._read()

    def next_chunk(self) -> bytes:
        while not self._chunks:
            if self._is_done:
                return b""
            self._read()
        return self._chunks.pop(0)

    def close(self) -> None:
        self.socket.close()

    def is_over(self) -> bool:
        """Nobody has asked anything: whatever is to be read is the server's end of it."""
        looks = select.poll()
        looks.register(self.socket, select.POLLIN)
        return bool(looks.poll(0))

    def has_unread(self) -> bool:
        is_waiting_in_tls = isinstance(self.socket, ssl.SSLSocket) and self.socket.pending() > 0
        return bool(self._chunks) or self._is_done or is_waiting_in_tls

    def _read(self) -> None:
        try:
            data = self.socket.recv(CHUNK_BYTES)
        except TimeoutError as error:
            raise HttpFailure("the server did not answer in time") from error
        except OSError as error:
            raise Ended(_why(error)) from error
        if not data:
            if self._has_headers and "content-length" not in self.headers:
                self._is_done, self.keeps_alive = True, False
                return
            raise Ended("EOF")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise HttpFailure(f"not HTTP: {error}") from error

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.decode("latin-1").lower()
        if key == "warning":
            self.warnings.append(value.decode(errors="replace"))
        self.headers[key] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.keeps_alive = self._parser.should_keep_alive()
        self._has_headers = self.status >= 200

    def on_body(self, part: bytes) -> None:
        self._chunks.append(bytes(part))

    def on_message_complete(self) -> None:
        self._is_done = self._has_headers


def host_and_port(authority: str, default: int) -> tuple[str, int]:
    """Of `host:port`, `[fd00::1]:6443`, `user@host`. Raises HttpFailure for a port that is none."""
    authority = authority.rpartition("@")[2]
    if authority.startswith("["):
        host, _, after = authority[1:].partition("]")
        port = after.removeprefix(":")
    else:
        host, _, port = authority.partition(":")
    if port and not (is_digits(port) and int(port) < 65536):
        raise HttpFailure(f"invalid port {port!r} in the server's address")
    return host, int(port) if port else default


def _name(host: str) -> "str | bytes":
    """As bytes it is not taken for a name in another script, which Python has tables for."""
    return host.encode() if host.isascii() else host


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {error.verify_message}"
    return getattr(error, "strerror", None) or str(error)
