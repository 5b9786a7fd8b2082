"""The unix sockets between the processes of one cluster.

Job: make one that only its owner may open; say how it is reached, however long its path is.
Invariant: a socket is 0600 in a directory that is 0700.
"""

import errno
import os
import socket
from pathlib import Path

LONGEST_PATH = 100  # of a unix socket's address: 108 with its end


def listening_socket(directory: Path, name: str) -> socket.socket:
    """In the place of one that an earlier process has left. Raises OSError."""
    directory.mkdir(mode=0o700, exist_ok=True)
    (directory / name).unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(address_of(directory, name))
        os.chmod(directory / name, 0o600)
    except OSError:
        bound.close()
        raise
    return bound


def address_of(directory: Path, name: str) -> str:
    """For as long as this process lives. Raises OSError: only Linux reaches one by a long path."""
    path = str(directory / name)
    if len(os.fsencode(path)) <= LONGEST_PATH:
        return path
    if not hasattr(os, "O_PATH"):
        raise OSError(errno.ENAMETOOLONG, "a shorter --data-dir is needed for its sockets", path)
    directory.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{descriptor}/{name}"
