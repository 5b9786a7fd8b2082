"""Removing a directory tree, with files of other users in it.

Job: `remove_tree`; blocking.
Invariant: however deep the directories are, neither the stack nor the length of a path ends it:
    what lies deeper is moved up first.
Invariant: no link is followed, and no mount is emptied.
"""

import os
import secrets
from collections.abc import Iterator

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: str | os.PathLike[str]) -> None:
    """Raises OSError: FileNotFoundError where it is not there, NotADirectoryError for a link."""
    root = os.open(path, _DIRECTORY)
    try:
        names = (f".removed-{word}" for word in iter(lambda: secrets.token_hex(8), ""))
        waiting = _empty(root, root, names)
        while waiting:
            name = waiting.pop()
            inner = os.open(name, _DIRECTORY, dir_fd=root)
            try:
                waiting += _empty(inner, root, names)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=root)
    finally:
        os.close(root)
    os.rmdir(path)


def _empty(directory: int, root: int, names: Iterator[str]) -> list[str]:
    """Its files go; its directories are in `root` then, under these names."""
    found = []
    with os.scandir(directory) as entries:
        listed = list(entries)
    for entry in listed:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name, dir_fd=directory)
        elif directory == root:
            found.append(entry.name)
        else:
            name = next(names)
            os.rename(entry.name, name, src_dir_fd=directory, dst_dir_fd=root)
            found.append(name)
    return found
