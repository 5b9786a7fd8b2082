"""Loop devices: a file as a block device. Blocking.

Job: attach a file to a free loop device, find the one it has, tell it of a new size, let it go.
"""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_CONTROL = "/dev/loop-control"
_GET_FREE, _SET_FD, _CLR_FD, _SET_CAPACITY = 0x4C82, 0x4C00, 0x4C01, 0x4C07
_TRIES = 16
_SYSTEM = Path("/sys/block")


def find(file: str) -> str | None:
    """The device that the file is attached to."""
    wanted = os.path.realpath(file)
    return next((device for device, backing in _attached() if backing == wanted), None)


def find_below(directory: str) -> list[str]:
    """The files there that are attached."""
    inside = f"{os.path.realpath(directory)}/"
    return [backing for _, backing in _attached() if backing.startswith(inside)]


def _attached() -> Iterator[tuple[str, str]]:
    """Devices, each with its file."""
    for place in sorted(_SYSTEM.glob("loop*/loop/backing_file")):
        with contextlib.suppress(OSError):
            backing = place.read_text().rstrip("\n").removesuffix(" (deleted)")
            yield f"/dev/{place.parent.parent.name}", backing


def attach(file: str) -> str:
    """The device that it has then. Raises OSError."""
    known = find(file)
    if known is not None:
        return known
    backing = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            device = _free_device()
            opened = os.open(device, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(opened, _SET_FD, backing)
                return device
            except OSError as error:
                if error.errno != errno.EBUSY:  # somebody else was faster
                    raise
            finally:
                os.close(opened)
    finally:
        os.close(backing)
    raise OSError(errno.EBUSY, "no loop device is free")


def _free_device() -> str:
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        number = fcntl.ioctl(control, _GET_FREE)
    finally:
        os.close(control)
    device = f"/dev/loop{number}"
    if not os.path.exists(device):  # where nobody makes device files by itself
        with contextlib.suppress(FileExistsError):
            os.mknod(device, 0o660 | 0o060000, os.makedev(7, number))
    return device


def grown(device: str) -> None:
    """Its file is larger now. Raises OSError."""
    opened = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(opened, _SET_CAPACITY)
    finally:
        os.close(opened)


def detach(file: str) -> None:
    """At once, or with the last one who has it open or mounted. One that is not attached is fine.
    Raises OSError."""
    device = find(file)
    if device is None:
        return
    opened = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(opened, _CLR_FD)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
    finally:
        os.close(opened)
