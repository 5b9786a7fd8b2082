"""Standard streams of containers: exec and attach.

Job: connect the terminal (or pipes) with the channels of the connection; give the exit code.
Invariant: a terminal that was made raw is itself again, however this ends.
"""

import json
import os
import select
from typing import Any

from sampan.api.errors import from_status
from sampan.cli.errors import CliError, Plain
from sampan.cli.session import Session
from sampan.client.channels import ChannelSocket
from sampan.core.fast_dataclass import dataclass

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSED = 0, 1, 2, 3, 4, 255
PROTOCOL = "v5.channel.k8s.io"
CHUNK_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Wanted:
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


def run(
    session: Session, path: str, query: list[tuple[str, str]], wanted: Wanted, out: Any = None
) -> int:
    """Streams until the other side ends; `out` takes standard output instead of the terminal."""
    for name in ("stdin", "stdout", "stderr", "tty"):
        if getattr(wanted, name) and not (name == "stderr" and wanted.tty):
            query.append((name, "true"))
    socket = session.api.websocket(path, query, PROTOCOL)
    restore = _raw_terminal(session) if wanted.tty else None
    try:
        if wanted.tty:
            _send_size(session, socket)
        status = _pump(session, socket, wanted, out)
    finally:
        if restore is not None:
            restore()
        socket.close()
    return _exit_code(status)


def _pump(session: Session, socket: ChannelSocket, wanted: Wanted, out: Any) -> bytes:
    stdin = _descriptor(session) if wanted.stdin else None
    if wanted.stdin and stdin is None:
        socket.send(STDIN, session.io.stdin.read())
        socket.send(CLOSED, bytes([STDIN]))
    status = b""
    raw_out = out or session.io.raw_stdout()
    while True:
        if not socket.has_unread():
            watched: list[Any] = [socket.link] if stdin is None else [socket.link, stdin]
            ready = select.select(watched, [], [])[0]
            if stdin is not None and stdin in ready:
                stdin = _forward_stdin(socket, stdin)
        for channel, data in socket.messages(block=False):
            if channel == STDOUT:
                raw_out.write(data)
                raw_out.flush()
            elif channel == STDERR:
                session.io.stderr.write(data.decode(errors="replace"))
                session.io.stderr.flush()
            elif channel == ERROR:
                status += data
        if not socket.is_open:
            return status


def _forward_stdin(socket: ChannelSocket, stdin: int) -> int | None:
    data = os.read(stdin, CHUNK_BYTES)
    if data:
        socket.send(STDIN, data)
        return stdin
    socket.send(CLOSED, bytes([STDIN]))
    return None


def _descriptor(session: Session) -> int | None:
    try:
        return int(session.io.stdin.fileno())
    except (OSError, AttributeError, ValueError):
        return None


def _raw_terminal(session: Session) -> Any:
    if not session.io.stdin_is_terminal():
        return None
    import termios
    import tty

    descriptor = session.io.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    return lambda: termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _send_size(session: Session, socket: ChannelSocket) -> None:
    if not session.io.is_terminal():
        return
    size = os.get_terminal_size(session.io.stdout.fileno())
    text = json.dumps({"Width": size.columns, "Height": size.lines})
    socket.send(RESIZE, text.encode())


def _exit_code(status: bytes) -> int:
    if not status:
        return 0
    found = json.loads(status)
    if found.get("status") == "Success":
        return 0
    for cause in (found.get("details") or {}).get("causes") or []:
        if cause.get("reason") == "ExitCode":
            code = int(cause.get("message") or 1)
            raise CommandEnded(code)
    if found.get("code") and found.get("reason") not in ("InternalError", None):
        raise from_status(found)
    raise CliError(str(found.get("message") or "the command could not be run"))


class CommandEnded(Plain):
    """The command in the container failed: its exit code is ours."""

    def __init__(self, code: int) -> None:
        super().__init__(f"command terminated with exit code {code}")
        self.code = code
