"""network/nftables/dumps.py: many messages, the last of them, and what the kernel refuses."""

import errno
import socket
import struct

import pytest

from sampan.network.nftables.attributes import message
from sampan.network.nftables.dumps import answers

ERROR, DONE, ENTRY = 2, 3, 0x0A03


@pytest.fixture
def ends():
    ours, kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, kernel:
        yield ours, kernel


def test_answers_are_read_to_the_last_over_several_datagrams(ends):
    ours, kernel = ends
    kernel.send(message(ENTRY, 0, 1, b"one.") + message(ENTRY, 0, 1, b"two."))
    kernel.send(message(ENTRY, 0, 1, b"end.") + message(DONE, 0, 1, b""))
    assert list(answers(ours)) == [b"one.", b"two.", b"end."]


def test_what_the_kernel_refuses_is_raised(ends):
    ours, kernel = ends
    kernel.send(message(ENTRY, 0, 1, b"one."))
    kernel.send(message(ERROR, 0, 1, struct.pack("=i", -errno.EPERM)))
    read = answers(ours)
    assert next(read) == b"one."
    with pytest.raises(PermissionError):
        next(read)
