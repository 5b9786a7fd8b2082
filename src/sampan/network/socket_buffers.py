"""Receive buffers of netlink sockets.

Job: as much as is asked for where we may; what the machine allows everybody, where we are root of a
    user namespace only.
"""

import socket

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33  # not bound by the machine's limit


def widen_receiving(opened: socket.socket, size: int) -> None:
    _widen(opened, _SO_RCVBUFFORCE, socket.SO_RCVBUF, size)


def widen_sending(opened: socket.socket, size: int) -> None:
    _widen(opened, _SO_SNDBUFFORCE, socket.SO_SNDBUF, size)


def _widen(opened: socket.socket, forced: int, bounded: int, size: int) -> None:
    try:
        opened.setsockopt(socket.SOL_SOCKET, forced, size)
    except PermissionError:
        opened.setsockopt(socket.SOL_SOCKET, bounded, size)
