"""The kernel's mounts: made, found and undone.

Job: mount(2) and umount2(2), and what /proc/self/mountinfo says.
Invariant: no symbolic link is followed when something is unmounted.
"""

import ctypes
import errno
import os
from pathlib import Path

from sampan.core.patterns import lazy_pattern

MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_SHARED = 1, 0x20, 0x1000, 0x4000, 1 << 20
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8
_ESCAPE = lazy_pattern(r"\\([0-7]{3})")
_MOUNTINFO = Path("/proc/self/mountinfo")
_libc = ctypes.CDLL(None, use_errno=True)  # once: each is a class of its own


def mount(source: str, target: str, fstype: str = "", flags: int = 0, options: str = "") -> None:
    """Raises OSError."""
    done = _libc.mount(
        os.fsencode(source), os.fsencode(target), fstype.encode() or None,
        ctypes.c_ulong(flags), options.encode() or None,
    )  # fmt: skip
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def mount_tmpfs(target: str, size_bytes: int = 0) -> None:
    mount("tmpfs", target, "tmpfs", 0, f"size={size_bytes}" if size_bytes else "")


def share(directory: str) -> None:
    """Make what is mounted below `directory` seen by whoever mounts it, and the other way."""
    mount(directory, directory, flags=MS_BIND | MS_REC)
    mount("none", directory, flags=MS_SHARED | MS_REC)


def unmount(place: str) -> bool:
    """Take away the uppermost mount at `place`, at once, whoever uses it. False: none is there."""
    if _libc.umount2(os.fsencode(place), _MNT_DETACH | _UMOUNT_NOFOLLOW) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOENT):
        return False
    raise OSError(number, os.strerror(number), place)


def unmount_all(place: str) -> None:
    while unmount(place):
        """There may be several, one above the other."""


def is_shared(place: str) -> bool:
    """Is there a mount at exactly this place that is shared?"""
    real, found = os.path.realpath(place), False
    for line in _MOUNTINFO.read_text().splitlines():
        fields = line.split(" ")
        if _decode(fields[4]) == real:
            found = any(field.startswith("shared:") for field in fields[6 : fields.index("-")])
    return found  # of several, one above the other, the last


def propagates(path: str) -> bool:
    """Is the mount that `path` is on a shared one?"""
    real, longest, found = os.path.realpath(path), -1, False
    for line in _MOUNTINFO.read_text().splitlines():
        fields = line.split(" ")
        place = _decode(fields[4])
        covers = real == place or real.startswith(place if place == "/" else f"{place}/")
        if covers and len(place) >= longest:  # of several at one place, the last
            shared = any(field.startswith("shared:") for field in fields[6 : fields.index("-")])
            longest, found = len(place), shared
    return found


def mounts_below(directory: str, mountinfo: str | None = None) -> list[str]:
    """At and below it, in the order in which they were mounted."""
    text = _MOUNTINFO.read_text() if mountinfo is None else mountinfo
    name = os.path.basename(directory)
    # Most are of other pods; a name that the kernel writes otherwise is looked for everywhere.
    lines = [line for line in text.splitlines() if name in line or "\\" in line]
    places = (_decode(line.split(" ")[4]) for line in lines)
    return [place for place in places if place == directory or place.startswith(f"{directory}/")]


def is_mounted(place: str) -> bool:
    """Is something mounted at exactly this place? A bind mount counts, too."""
    real = os.path.realpath(place)
    return real in mounts_below(real)


def unmount_below(directory: str) -> None:
    """Raises OSError where something stays: then nothing below may be removed."""
    real = os.path.realpath(directory)
    undone = [unmount(place) for place in reversed(mounts_below(real))]
    if all(undone):
        return  # each of them; the list of all mounts is long where pods are many
    left = mounts_below(real)
    if left:
        raise OSError(errno.EBUSY, "still mounted", left[0])


def _decode(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)
