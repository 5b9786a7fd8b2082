"""The ports of this process' netlink sockets: whose change a notification tells of.

Job: bind a socket to a port that carries the process' number, and recognise such ports.
Invariant: no other process of this machine has a port that is taken for ours: programs leave the
    choice to the kernel, which takes their own process number, or one with the highest bit set.
"""

import ctypes
import errno
import os
import socket
import struct

_PROCESS_BITS = 22  # of the largest process number that Linux can have
_MOST = 1 << (31 - _PROCESS_BITS)
_MASK = (1 << _PROCESS_BITS) - 1
_SO_ATTACH_FILTER = 26
# linux/filter.h
_LOAD_WORD, _AND, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_PORT_AT = 12  # in the header of a message
_INSTRUCTION = struct.Struct("=HBBI")  # code, jump if true, jump if false, operand


def bind(netlink: socket.socket) -> None:
    """Raises OSError where there is no port left."""
    for number in range(1, _MOST):
        try:
            netlink.bind((number << _PROCESS_BITS | os.getpid(), 0))
            return
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def is_own(port: int) -> bool:
    return port >> _PROCESS_BITS != 0 and port & _MASK == os.getpid()


def ignore_own(netlink: socket.socket) -> None:
    """What this process changes itself neither wakes it nor fills the socket. Raises OSError."""
    program = b"".join(
        _INSTRUCTION.pack(*instruction)
        for instruction in (
            (_LOAD_WORD, 0, 0, _PORT_AT),
            (_AND, 0, 0, _as_loaded(_MASK)),
            (_JUMP_IF_EQUAL, 0, 1, _as_loaded(os.getpid())),
            (_RETURN, 0, 0, 0),
            (_RETURN, 0, 0, 0xFFFFFFFF),
        )
    )
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HP", len(program) // _INSTRUCTION.size, ctypes.addressof(code))
    netlink.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, head)


def _as_loaded(number: int) -> int:
    """The filter reads words as the network writes them, and netlink writes as the machine."""
    return int.from_bytes(struct.pack("=I", number), "big")
