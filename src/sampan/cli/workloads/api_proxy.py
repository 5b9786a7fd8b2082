"""A small HTTP server that passes requests on to the API, piece by piece.

Job: what `proxy` has behind its port: the API, and files of a directory beside it.
Invariant: what the filter does not allow reaches neither.
"""

import os
import re
import socket
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sampan.client.blocking import BlockingClient, NoAnswer
from sampan.client.kubeconfig import Connection
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.blocking import Stream

PASSED_ON = ("accept", "content-type", "user-agent", "if-none-match")
PASSED_BACK = ("content-type", "etag", "warning", "retry-after", "cache-control", "audit-id")
Patterns = list[re.Pattern[str]]


@dataclass(frozen=True, slots=True)
class Filter:
    """Who may ask for what."""

    accepted: Patterns
    rejected: Patterns
    hosts: Patterns
    methods: Patterns

    def allows(self, method: str, path: str, host: str) -> bool:
        return (
            _matches(self.accepted, path)
            and not _matches(self.rejected, path)
            and not _matches(self.methods, method)
            and _matches(self.hosts, host)
        )


def _matches(patterns: Patterns, text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Served:
    """What is behind the port."""

    connection: Connection
    wanted: Filter | None
    prefix: str  # of the API
    folder: str  # of files, if any
    files: str  # their prefix


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, served: Served, *arguments: Any) -> None:
        self._served = served
        super().__init__(*arguments, directory=served.folder or os.curdir)

    def _serve(self) -> None:
        served, path = self._served, self.path.partition("?")[0]
        host = self.headers.get("host") or ""
        host = host.rpartition(":")[0] or host
        if served.wanted is not None and not served.wanted.allows(self.command, path, host):
            self._answer(403, "Forbidden")
        elif self.headers.get("upgrade"):
            self._answer(501, "connections that change their protocol are not passed on")
        elif served.folder and path.startswith(served.files) and self.command == "GET":
            self.path = "/" + self.path.removeprefix(served.files)
            super().do_GET()
        elif path.startswith(f"{served.prefix}/"):
            self._pass_on()
        else:
            self._answer(404, "404 page not found")

    def _pass_on(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(size) if size else b""
        headers = [(name, self.headers[name]) for name in PASSED_ON if self.headers[name]]
        client = BlockingClient(self._served.connection)
        try:
            target = self.path.removeprefix(self._served.prefix)
            stream = client.pass_on(self.command, target, headers, body)
        except NoAnswer as error:
            self._answer(502, str(error))
            return
        try:
            self._write(stream)
        finally:
            stream.close()
            client.close()

    def _write(self, stream: Stream) -> None:
        """Each piece as it comes: a watch is one answer that does not end."""
        self.send_response(stream.status)
        for name in PASSED_BACK:
            if name in stream.headers:
                self.send_header(name, stream.headers[name])
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for chunk in stream:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def do_HEAD(self) -> None:
        """Else the files of the directory would be told of."""
        self._answer(405, "")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _serve

    def _answer(self, code: int, text: str) -> None:
        self.send_response(code)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the base class calls it so
        return


class _TcpServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, address: Any) -> None:
        """A client that goes in the middle of an answer is nothing to speak of."""


class _UnixServer(_TcpServer):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        """Without a host's name and a port, which a file does not have."""
        self.socket.bind(self.server_address)


def server_of(served: Served, path: str, address: tuple[str, int]) -> ThreadingHTTPServer:
    """On a unix socket at the path, else at the address. Raises OSError where it cannot listen."""
    handler: Any = partial(Handler, served)
    where: Any = path or address
    return (_UnixServer if path else _TcpServer)(where, handler)
