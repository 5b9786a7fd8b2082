"""subPath: a file or directory inside of a volume, found without ever leaving it.

Job: walk the path one component at a time from an open directory; bind what was found to a place
    of the pod's own, so that nothing can be exchanged between the check and its use.
Invariant: no component is followed by the kernel: links are read and walked by us, `..` goes back
    along the directories that we hold open, and never above the volume.
Invariant: what is bound is the very inode that was reached.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sampan.core.mounts import MS_BIND, mount, unmount_all
from sampan.kubelet.contracts.volumes_hook import SubPathFailure

_MOST_LINKS = 40  # as the kernel's own bound


@contextmanager
def opened_beneath(root: str, sub_path: str) -> Iterator[int]:
    """A descriptor (O_PATH) of what is at `sub_path`; missing directories are made, with the mode
    of the volume. Raises SubPathFailure or OSError."""
    with _reached(root, sub_path, _open_or_make) as descriptor:
        yield descriptor


def read_beneath(root: str, path: str, most_bytes: int) -> bytes:
    """A file in a volume. Raises SubPathFailure or OSError."""
    with _reached(root, path, _open) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SubPathFailure("it is no file")
        with open(f"/proc/self/fd/{descriptor}", "rb") as file:
            found = file.read(most_bytes + 1)
    if len(found) > most_bytes:
        raise SubPathFailure("it is too long")
    return found


@contextmanager
def _reached(root: str, path: str, open_: Callable[[int, str, int], int]) -> Iterator[int]:
    held = [os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        _walk(held, path, (root.rstrip("/"), os.path.realpath(root).rstrip("/")), open_)
        yield held[-1]
    finally:
        for descriptor in held:
            os.close(descriptor)


def _walk(
    held: list[int], sub_path: str, roots: tuple[str, ...], open_: Callable[[int, str, int], int]
) -> None:
    """`held`: from the volume's root to where we are. `roots`: what the node calls the root."""
    mode = stat.S_IMODE(os.fstat(held[0]).st_mode)
    left, links = _parts(sub_path), 0
    while left:
        name = left.pop(0)
        if name == "..":
            if len(held) == 1:
                raise SubPathFailure("it leads out of the volume")
            os.close(held.pop())
            continue
        reached = open_(held[-1], name, mode)
        if not stat.S_ISLNK(os.fstat(reached).st_mode):
            held.append(reached)
            continue
        try:
            target = os.readlink("", dir_fd=reached)
        finally:
            os.close(reached)
        links += 1
        if links > _MOST_LINKS:
            raise SubPathFailure("there are too many symbolic links")
        if target.startswith("/"):
            target = _inside(target, roots)
            while len(held) > 1:
                os.close(held.pop())
        left = _parts(target) + left


def _inside(target: str, roots: tuple[str, ...]) -> str:
    """An absolute link of the node that leads back into the volume, as a way from its root."""
    for root in roots:
        if target == root or target.startswith(f"{root}/"):
            return target[len(root) :].lstrip("/")
    raise SubPathFailure("a symbolic link leads out of the volume")


def _parts(path: str) -> list[str]:
    if path.startswith("/"):
        raise SubPathFailure("it is an absolute path")
    return [part for part in path.split("/") if part not in ("", ".")]


def _open(parent: int, name: str, mode: int) -> int:
    return os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


def _open_or_make(parent: int, name: str, mode: int) -> int:
    try:
        return _open(parent, name, mode)
    except FileNotFoundError:
        os.mkdir(name, 0o700, dir_fd=parent)
    made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        os.fchmod(made, mode)
    finally:
        os.close(made)
    return _open(parent, name, mode)


def bind_sub_path(root: str, sub_path: str, target: str) -> None:
    """Make `target` show what is at `sub_path` now; a mount that already does is left alone."""
    with opened_beneath(root, sub_path) as reached:
        wanted = os.fstat(reached)
        if _shows(target, wanted):
            return
        unmount_all(target)
        _make_place(target, stat.S_ISDIR(wanted.st_mode))
        mount(f"/proc/self/fd/{reached}", target, flags=MS_BIND)
        if not _shows(target, wanted):
            unmount_all(target)
            raise SubPathFailure("something else was mounted")


def _shows(target: str, wanted: os.stat_result) -> bool:
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino)


def _make_place(target: str, is_directory: bool) -> None:
    os.makedirs(os.path.dirname(target), 0o750, exist_ok=True)
    try:
        if os.path.isdir(target) != is_directory and os.path.lexists(target):
            (os.unlink if is_directory else os.rmdir)(target)
        if is_directory:
            os.mkdir(target, 0o750)
        else:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640))
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
