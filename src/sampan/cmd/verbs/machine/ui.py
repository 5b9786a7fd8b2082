"""`sampan ui`: the page of a cluster, opened and logged in.

Job: ask the server for a login code as the user of the kubeconfig, print the link, open it.
Invariant: the code is in no argument of a process and in no log: it is in the link's fragment,
    which no server is sent, and a browser finds the link in a file that only its user can read.
"""

import asyncio
import html
import os
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path

from sampan.api.errors import ApiError, NotFound, UnknownPath
from sampan.client import kubeconfig, rest
from sampan.cmd.cluster.ca_pin import fingerprint
from sampan.cmd.errors import CannotStart, sentence_of
from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass

CODE_PATH = "/sampan/v1/ui/code"


@dataclass(frozen=True, slots=True)
class LoginLink:
    url: str
    seconds: int
    authority: str  # the fingerprint of who signed the server's certificate; "" where all know it


def run(kubeconfig_path: str, *, opens: bool) -> int:
    try:
        link = asyncio.run(_login_link(kubeconfig_path))
        has_opened = opens and has_screen(os.environ, sys.platform) and _open(link)
    except (ApiError, CannotStart, kubeconfig.KubeconfigError, OSError) as error:
        print(f"sampan: {sentence_of(error)}", file=sys.stderr)
        return 1
    if link.authority:
        print(
            "The cluster signs its certificate itself, and browsers ask whether you trust it: its "
            f"authority is {link.authority}",
            file=sys.stderr,
        )
    print(f"Good once, for {link.seconds} s:", file=sys.stderr)
    print(link.url)
    if has_opened:
        print("(opened in your browser)", file=sys.stderr)
    return 0


async def _login_link(path: str) -> LoginLink:
    """Raises CannotStart, ApiError."""
    connection = kubeconfig.load(path, os.environ, str(Path.home())).connection()
    client = rest.connect(connection, clock=SystemClock(), user_agent="sampan-ui")
    try:
        found = await client.post_path(CODE_PATH, {})
    except (NotFound, UnknownPath) as error:
        raise CannotStart(
            "this server has no page: it runs with --ui=false, or is none of sampan's"
        ) from error
    finally:
        await client.close()
    url = f"{connection.server.rstrip('/')}{found['path']}#code={found['code']}"
    authority = fingerprint(connection.ca) if connection.ca else ""
    return LoginLink(url, found["expiresInSeconds"], authority)


def has_screen(environ: Mapping[str, str], platform: str) -> bool:
    """Whether a browser could show something: not over ssh, not in a container."""
    if platform in ("darwin", "win32"):
        return not environ.get("SSH_CONNECTION")
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def _open(link: LoginLink) -> bool:
    """By way of a file: arguments of processes are everybody's to read."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or Path.home() / ".cache") / "sampan"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "ui.html"
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(redirect(link.url))
    return webbrowser.open(path.as_uri())


def redirect(url: str) -> str:
    target = html.escape(url, quote=True)
    return (
        '<!doctype html><meta charset="utf-8"><title>sampan</title>'
        f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">sampan</a>'
    )
