"""A container's root: an image's layers below, a directory of its own above; images as volumes.

Job: mount and unmount the overlays; how much was written above.
Invariant: however many layers there are, their names fit into one mount call: they are named by
    open directories.
"""

import contextlib
import ctypes
import errno
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from sampan.core.mounts import MS_RDONLY, mount, unmount_all, unmount_below
from sampan.kubelet.contracts.runtime import Layer
from sampan.kubelet.native.mapped_mounts import mount_mapped
from sampan.runtime import user_namespace

_FUSE_SECONDS = 10.0
VOLUMES = "volumes"  # of a container in a user namespace, mapped
_IMAGE_VOLUMES = "image-volumes"
_libc = ctypes.CDLL(None, use_errno=True)
_OPENAT2, _RESOLVE_BENEATH = 437, 0x08


@contextlib.contextmanager
def mapped_layers(directory: Path, lowers: Sequence[Path], users: Path) -> Iterator[list[Path]]:
    """As the users of a pod see them that are pinned at `users`. Raises OSError."""
    mapped = [directory / "mapped-layers" / str(number) for number in range(len(lowers))]
    try:
        for lower, target in zip(lowers, mapped, strict=True):
            mount_mapped(str(lower), target, users)
        yield mapped
    finally:
        for target in mapped:  # the overlay keeps what it needs of them
            unmount_all(str(target))


def mount_root_of_users(directory: Path, lowers: Sequence[Path], users: Path, first: int) -> Path:
    """As `mount_root`, for a pod with users of its own, pinned at `users`: its user 0 is `first`.
    What it writes belongs to its users on the disk, too."""
    with mapped_layers(directory, lowers, users) as mapped:
        (directory / "upper").mkdir(exist_ok=True)
        os.chown(directory / "upper", first, first)
        return mount_root(directory, mapped)


def mount_root(directory: Path, lowers: Sequence[Path]) -> Path:
    """`lowers`: the lowest first. Blocking. Raises OSError."""
    upper, work, root = (directory / name for name in ("upper", "work", "rootfs"))
    empty = directory / "empty"  # an image without layers is a root without files
    for made in (upper, work, root, empty):
        made.mkdir(exist_ok=True)
    rights = user_namespace.rights()
    opened = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in (lowers or [empty])]
    try:
        below = ":".join(f"/proc/self/fd/{number}" for number in reversed(opened))
        # Its directories are those of the container, however long the path to them.
        options = f"lowerdir={below},upperdir={upper},workdir={work}"
        _mount_overlay(str(root), options + (",userxattr" if rights.is_inside else ""))
    except OSError as error:
        if not rights.is_inside:
            raise
        _mount_by_fuse(root, f"lowerdir={_joined(lowers or [empty])},upperdir={upper}", work, error)
    finally:
        for number in opened:
            os.close(number)
    return root


def _mount_overlay(root: str, options: str) -> None:
    """No container is started a second time on what it wrote: nobody waits until that is on the
    disk, least of all who unmounts it. Raises OSError."""
    try:
        mount("overlay", root, "overlay", 0, f"{options},volatile")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        mount("overlay", root, "overlay", 0, options)  # kernels before 5.10


def _joined(lowers: Sequence[Path]) -> str:
    return ":".join(str(path) for path in reversed(lowers))


def _mount_by_fuse(root: Path, options: str, work: Path, why: OSError) -> None:
    """Kernels before 5.11 have no overlay for root of a user namespace. Raises OSError."""
    program = shutil.which("fuse-overlayfs")
    if program is None:
        raise OSError(why.errno, f"{why.strerror}; install fuse-overlayfs", str(root)) from why
    done = subprocess.run(
        [program, "-o", f"{options},workdir={work}", str(root)], capture_output=True, text=True,
        timeout=_FUSE_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise OSError(why.errno, f"fuse-overlayfs: {done.stderr.strip()}", str(root)) from why


def mount_image(directory: Path, name: str, lowers: Sequence[Path]) -> Path:
    """An image that nobody can write to: a volume of a container. Blocking. Raises OSError."""
    place, empty, other = (directory / _IMAGE_VOLUMES / word for word in (name, "empty", "other"))
    for needed in (place, empty, other):
        needed.mkdir(parents=True, exist_ok=True)
    # The kernel wants two layers at least, and none twice.
    below = [empty, *(lowers or [other])]
    opened = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in below]
    try:
        said = ":".join(f"/proc/self/fd/{number}" for number in reversed(opened))
        notes = ",userxattr" if user_namespace.rights().is_inside else ""
        mount("overlay", str(place), "overlay", MS_RDONLY, f"lowerdir={said}{notes}")
    finally:
        for number in opened:
            os.close(number)
    return place


def directory_inside(root: Path, path: str) -> str:
    """The directory of that name, however links in the image lead to it, as long as they do not
    lead out of it. Raises OSError."""
    how = struct.pack("QQQ", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _RESOLVE_BENEATH)
    opened = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = _libc.syscall(_OPENAT2, opened, os.fsencode(path), how, len(how))
        if found < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(opened)
    try:
        return os.readlink(f"/proc/self/fd/{found}")
    finally:
        os.close(found)


def unmount_root(directory: Path) -> None:
    for place in (directory / _IMAGE_VOLUMES).glob("*"):
        unmount_all(str(place))
    unmount_all(str(directory / "rootfs"))
    if (directory / VOLUMES).exists():
        unmount_below(str(directory / VOLUMES))


def written_above(directory: Path) -> Layer:
    """What the container has written; blocking."""
    used = inodes = 0
    waiting = [str(directory / "upper")]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    used, inodes = used + status.st_blocks * 512, inodes + 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue  # removed meanwhile
    return Layer(used, inodes)
