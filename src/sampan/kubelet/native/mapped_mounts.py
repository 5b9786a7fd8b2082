"""Files of the node as the users of a pod with users of its own see them: id-mapped mounts.

Job: mount a directory or a file a second time, so that what belongs to user 0 on the disk belongs
    to the pod's user 0.
Invariant: what is on the disk is not changed; what the pod writes there is its own users' as the
    pod sees them, 0…65535.
"""

import ctypes
import errno
import os
import re
import struct
from pathlib import Path

from sampan.kubelet.contracts.runtime import RuntimeFailure
from sampan.runtime import user_namespace

# The same numbers on every machine since Linux 5.1; arguments from linux/mount.h.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_HERE, _EMPTY_PATH, _RECURSIVE = -100, 0x1000, 0x8000
_CLONE, _CLOSE_ON_EXEC = 1, 0x80000
_FROM_DESCRIPTOR = 4
_ID_MAP = 0x00100000
_libc = ctypes.CDLL(None, use_errno=True)
_ATTRIBUTES = struct.Struct("QQQQ")  # set, clear, propagation, user namespace


def is_possible(release: str, runtime: str) -> bool:
    """Overlays over mapped layers came with Linux 5.19; that root of a user namespace can have them
    came later, and is not made use of."""
    numbers = [int(part) for part in re.findall(r"[0-9]+", release)[:2]]
    return numbers >= [5, 19] and runtime == "crun" and not user_namespace.rights().is_inside


def mount_mapped(source: str, target: Path, users: Path) -> None:
    """`users`: a pinned user namespace. Blocking. Raises OSError; RuntimeFailure where the file
    system cannot be mounted so."""
    if os.path.isdir(source):
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    tree = _call(
        _OPEN_TREE, _HERE, os.fsencode(source),
        ctypes.c_uint(_CLONE | _CLOSE_ON_EXEC | _RECURSIVE), source=source,
    )  # fmt: skip
    namespace = os.open(users, os.O_RDONLY | os.O_CLOEXEC)
    try:
        wanted = _ATTRIBUTES.pack(_ID_MAP, 0, 0, namespace)
        flags = ctypes.c_uint(_EMPTY_PATH | _RECURSIVE)
        _call(_MOUNT_SETATTR, tree, b"", flags, wanted, ctypes.c_size_t(len(wanted)), source=source)
        where = os.fsencode(target)
        _call(_MOVE_MOUNT, tree, b"", _HERE, where, ctypes.c_uint(_FROM_DESCRIPTOR), source=source)
    finally:
        os.close(namespace)
        os.close(tree)


def _call(number: int, *arguments: object, source: str) -> int:
    done: int = _libc.syscall(number, *arguments)
    if done >= 0:
        return done
    failure = ctypes.get_errno()
    if number == _MOUNT_SETATTR and failure == errno.EINVAL:
        raise RuntimeFailure(
            f"the file system of {source} has no id-mapped mounts, which hostUsers: false needs"
        )
    raise OSError(failure, os.strerror(failure), source)
