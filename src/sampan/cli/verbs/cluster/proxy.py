"""`proxy`: the API on a local port, with the kubeconfig's identity.

Job: a small HTTP server on loopback that passes requests on; refuses what it was told to refuse.
"""

import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sampan.cli.command import Command
from sampan.cli.errors import CliError, Quiet
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session
from sampan.client.blocking import BlockingClient

REJECTED = "^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach"


def _patterns(session: Session, text: str) -> list[re.Pattern[str]]:
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


def run(session: Session, values: Values) -> None:
    accepted = _patterns(session, values.text("accept-paths"))
    rejected = _patterns(session, values.text("reject-paths"))
    hosts = _patterns(session, values.text("accept-hosts"))
    handler = _handler(session, accepted, rejected, hosts, values.text("api-prefix").rstrip("/"))
    try:
        server = ThreadingHTTPServer((values.text("address"), values["port"]), handler)
    except OSError as error:
        raise CliError(
            f"listen tcp {values['address']}:{values['port']}: {(error.strerror or '').lower()}"
        ) from error
    session.print(f"Starting to serve on {values['address']}:{server.server_port}")
    session.io.stdout.flush()
    with server:
        server.serve_forever()


def _handler(
    session: Session,
    accepted: list[re.Pattern[str]],
    rejected: list[re.Pattern[str]],
    hosts: list[re.Pattern[str]],
    prefix: str,
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            path = self.path.partition("?")[0]
            host = (self.headers.get("host") or "").rpartition(":")[0]
            is_allowed = (
                any(pattern.search(path) for pattern in accepted)
                and not any(pattern.search(path) for pattern in rejected)
                and any(pattern.search(host) for pattern in hosts)
            )
            if not is_allowed:
                self._answer(403, b"<h3>Unauthorized</h3>", "text/html")
                return
            size = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(size) if size else b""
            client = BlockingClient(session.connection)
            try:
                answer = client._http.request(
                    self.command, self.path.removeprefix(prefix),
                    client._headers(self.headers.get("accept") or "*/*", self.headers.get("content-type") or ""),
                    body,
                )  # fmt: skip
            except OSError as error:
                self._answer(502, str(error).encode(), "text/plain")
                return
            finally:
                client.close()
            self._answer(answer.status, answer.body, answer.headers.get("content-type") or "")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on

        def _answer(self, code: int, body: bytes, kind: str) -> None:
            self.send_response(code)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            return

    return Handler


PROXY = Command(
    "proxy", "proxy [--port=PORT] [--www=static-dir] [--www-prefix=prefix] [--api-prefix=prefix] [options]",
    "Creates a proxy server between localhost and the Kubernetes API server.", run,
    (Flag("accept-hosts", default="^localhost$,^127\\.0\\.0\\.1$,^\\[::1\\]$", usage="Regular expression for hosts."),
     Flag("accept-paths", default="^.*", usage="Regular expression for paths to accept."),
     Flag("address", default="127.0.0.1", usage="The IP address on which to serve on."),
     Flag("api-prefix", default="/", usage="Prefix to serve the proxied API under."),
     Flag("port", "int", 8001, "The port on which to run the proxy; 0 picks one.", short="p"),
     Flag("reject-paths", default=REJECTED, usage="Regular expression for paths to reject.")),
)  # fmt: skip
