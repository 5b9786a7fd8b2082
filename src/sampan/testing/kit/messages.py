"""How the processes of the kit speak with each other: whole messages, and sockets in them.

Job: JSON over a pair of Unix sockets that keep messages apart; a message may bring one socket.
Invariant: an end that is closed is an end: whoever reads nothing has lost its other side.
"""

import socket
from typing import Any

import orjson

LONGEST = 1 << 16


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(to: socket.socket, message: dict[str, Any], enclosed: socket.socket | None = None) -> None:
    data = orjson.dumps(message)
    assert len(data) < LONGEST, "long answers go through files"
    if enclosed is None:
        to.send(data)
    else:
        socket.send_fds(to, [data], [enclosed.fileno()])


def receive(of: socket.socket) -> tuple[dict[str, Any], socket.socket | None] | None:
    """None where the other side is gone."""
    data, descriptors, _, _ = socket.recv_fds(of, LONGEST, 1)
    enclosed = socket.socket(fileno=descriptors[0]) if descriptors else None
    return (orjson.loads(data), enclosed) if data else None
