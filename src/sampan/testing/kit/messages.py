"""How the processes of the kit speak with each other: whole messages, and sockets in them.

Job: JSON over a pair of Unix sockets, each message behind its length; one may bring one socket.
Invariant: an end that is closed is an end: whoever reads nothing has lost its other side.
"""

import select
import socket
import struct
from typing import Any

import orjson

LONGEST = 1 << 16
_LENGTH = struct.Struct("!I")


def pair() -> tuple[socket.socket, socket.socket]:
    """Streams: not every system keeps the messages of a Unix socket apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def send(to: socket.socket, message: dict[str, Any], enclosed: socket.socket | None = None) -> None:
    data = orjson.dumps(message)
    assert len(data) < LONGEST, "long answers go through files"
    rest = memoryview(_LENGTH.pack(len(data)) + data)
    if enclosed is not None:  # it comes with the first bytes
        rest = rest[socket.send_fds(to, [rest], [enclosed.fileno()]) :]
    while rest:
        try:
            rest = rest[to.send(rest) :]
        except BlockingIOError:
            _wait(to, select.POLLOUT)


def receive(of: socket.socket) -> tuple[dict[str, Any], socket.socket | None] | None:
    """None where the other side is gone. Whoever does not block asks when there is something."""
    head, descriptors, _, _ = socket.recv_fds(of, _LENGTH.size, 1)
    enclosed = socket.socket(fileno=descriptors[0]) if descriptors else None
    head = _filled(of, head, _LENGTH.size) if head else b""
    data = _filled(of, b"", *_LENGTH.unpack(head)) if head else b""
    return (orjson.loads(data), enclosed) if data else None


def _filled(of: socket.socket, data: bytes, length: int) -> bytes:
    """What is there and what is on its way; nothing where the other side went in the middle."""
    while len(data) < length:
        try:
            more = of.recv(length - len(data))
        except BlockingIOError:
            _wait(of, select.POLLIN)
            continue
        if not more:
            return b""
        data += more
    return data


def _wait(for_socket: socket.socket, event: int) -> None:
    waiting = select.poll()
    waiting.register(for_socket, event)
    waiting.poll()
