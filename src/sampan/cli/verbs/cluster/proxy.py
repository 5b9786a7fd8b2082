"""`proxy`: the API on a local port, with the kubeconfig's identity.

Job: its flags become a server (cli/workloads/api_proxy.py) and what that server refuses.
"""

import os
import re
from typing import TYPE_CHECKING

from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Quiet
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session

if TYPE_CHECKING:
    from sampan.cli.workloads.api_proxy import Filter

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


def filter_of(session: Session, values: Values) -> "Filter | None":
    """None: nothing is refused."""
    from sampan.cli.workloads.api_proxy import Filter

    if values["disable-filter"]:
        if not values["unix-socket"]:
            session.print_warning("Request filter disabled, your proxy is vulnerable to XSRF attacks, please be cautious")  # fmt: skip
        return None
    return Filter(
        _patterns(session, values.text("accept-paths")),
        _patterns(session, values.text("reject-paths")),
        _patterns(session, values.text("accept-hosts")),
        _patterns(session, values.text("reject-methods")),
    )


def run(session: Session, values: Values) -> None:
    from sampan.cli.workloads.api_proxy import Served, server_of

    served = Served(
        session.connection, filter_of(session, values), values.text("api-prefix").rstrip("/"),
        values.text("www"), values.text("www-prefix"),
    )  # fmt: skip
    path = values.text("unix-socket")
    if path and values.is_set("port"):
        raise CliError("cannot set --unix-socket and --port at the same time")
    try:
        server = server_of(served, path, (values.text("address"), values["port"]))
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
