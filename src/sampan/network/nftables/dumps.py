"""What a netlink socket answers to a question whose answer is many messages.

Job: read them until the last. Blocking, for as long as the socket's own time-out.
Invariant: a failure that the kernel tells of is raised as OSError, never taken for an empty answer.
"""

import os
import socket
from collections.abc import Iterator

from sampan.network.nftables.attributes import number_of_error, split

_ERROR, _DONE = 2, 3
_ANSWER_BYTES = 1 << 16


def answers(netlink: socket.socket) -> Iterator[bytes]:
    """The content of each, as it comes."""
    while True:
        for kind, content in split(netlink.recv(_ANSWER_BYTES)):
            if kind == _DONE:
                return
            if kind == _ERROR:
                number = number_of_error(content)
                raise OSError(number, os.strerror(number))
            yield content
