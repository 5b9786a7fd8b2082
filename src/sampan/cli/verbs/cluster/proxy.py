"""`proxy`: the API on a local port, with the kubeconfig's identity.

Job: a small HTTP server on loopback that passes requests on, piece by piece, and serves files of a
    directory beside them; refuses what it was told to refuse.
"""

import os
import re
import socket
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Quiet
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session
from sampan.client.blocking import BlockingClient, NoAnswer
from sampan.client.kubeconfig import Connection
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.blocking import Stream

REJECTED = "^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach"
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


def _patterns(session: Session, text: str) -> Patterns:
    found = []
    for part in filter(None, text.split(",")):
        try:
            found.append(re.compile(part))
        except re.error as error:
            why = (
                "missing closing ): `(`"
                if "unterminated" in str(error) or "missing )" in str(error)
                else str(error)
            )
            session.klog(
                "F", "proxy_server.go:197", f"Error compiling re: error parsing regexp: {why}"
            )
            raise Quiet(255) from error
    return found


def filter_of(session: Session, values: Values) -> Filter | None:
    """None: nothing is refused."""
    if values["disable-filter"]:
        if not values["unix-socket"]:
            session.warn("Request filter disabled, your proxy is vulnerable to XSRF attacks, please be cautious")  # fmt: skip
        return None
    return Filter(
        _patterns(session, values.text("accept-paths")),
        _patterns(session, values.text("reject-paths")),
        _patterns(session, values.text("accept-hosts")),
        _patterns(session, values.text("reject-methods")),
    )


class _TcpServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, address: Any) -> None:
        """A client that goes in the middle of an answer is nothing to speak of."""


class _UnixServer(_TcpServer):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        """Without a host's name and a port, which a file does not have."""
        self.socket.bind(self.server_address)


def run(session: Session, values: Values) -> None:
    served = Served(
        session.connection, filter_of(session, values), values.text("api-prefix").rstrip("/"),
        values.text("www"), values.text("www-prefix"),
    )  # fmt: skip
    handler: Any = partial(Handler, served)
    path = values.text("unix-socket")
    if path and values.is_set("port"):
        raise CliError("cannot set --unix-socket and --port at the same time")
    try:
        address: Any = path or (values.text("address"), values["port"])
        server = (_UnixServer if path else _TcpServer)(address, handler)
    except OSError as error:
        where = path or f"{values['address']}:{values['port']}"
        kind = "unix" if path else "tcp"
        raise CliError(f"listen {kind} {where}: {(error.strerror or '').lower()}") from error
    where = path or f"{values['address']}:{server.server_port}"
    session.print(f"Starting to serve on {where}")
    session.io.stdout.flush()
    try:
        with server:
            server.serve_forever()
    finally:
        if path:
            os.unlink(path)


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

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        return


PROXY = Command(
    "proxy", "proxy [--port=PORT] [--www=static-dir] [--www-prefix=prefix] [--api-prefix=prefix] [options]",
    "Creates a proxy server between localhost and the Kubernetes API server.", run,
    (Flag("accept-hosts", default="^localhost$,^127\\.0\\.0\\.1$,^\\[::1\\]$", usage="Regular expression for hosts."),
     Flag("accept-paths", default="^.*", usage="Regular expression for paths to accept."),
     Flag("address", default="127.0.0.1", usage="The IP address on which to serve on."),
     Flag("api-prefix", default="/", usage="Prefix to serve the proxied API under."),
     switch("disable-filter", "Disable request filtering in the proxy: anybody's page may ask."),
     Flag("keepalive", "duration", 0.0, "Accepted, without effect."),
     Flag("port", "int", 8001, "The port on which to run the proxy; 0 picks one.", short="p"),
     Flag("reject-methods", default="^$", usage="Regular expression for HTTP methods to reject."),
     Flag("reject-paths", default=REJECTED, usage="Regular expression for paths to reject."),
     Flag("unix-socket", short="u", usage="Unix socket on which to run the proxy."),
     Flag("www", short="w", usage="Also serve static files from the given directory."),
     Flag("www-prefix", default="/static/", short="P", usage="Prefix to serve static files under.")),
)  # fmt: skip
