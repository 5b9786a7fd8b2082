"""Atomic writer: the files of a volume change all at once, by one symlink.

Job: bring a directory to a payload, as upstream's atomic writer lays it out: the files are in a
    directory with a timestamp, `..data` is a link to it, and every visible name a link through
    `..data`. Swapping that one link changes all files in one step.
Invariant: a crash at any moment leaves a directory that shows one whole payload, and that the next
    write brings in order.
Owner: one call at a time per directory; whoever mounts it mounts it read-only.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime

from sampan.kubelet.volumes.payload import File, Payload

DATA, NEW_DATA = "..data", "..data_tmp"
_DIRECTORY_MODE = 0o755


def write_payload(
    directory: str, payload: Payload, now: float, own: Callable[[str], None] = lambda path: None
) -> bool:
    """True where something had to be written. `own` is called with what was made before it can be
    seen, to give it to somebody."""
    current = _current(directory)
    changed = current is None or not _holds(os.path.join(directory, current), payload)
    if changed:
        stamp = datetime.fromtimestamp(now, UTC).strftime("..%Y_%m_%d_%H_%M_%S.")
        fresh = tempfile.mkdtemp(prefix=stamp, dir=directory)
        os.chmod(fresh, _DIRECTORY_MODE)
        for path, file in payload.items():
            _write(fresh, path, file)
        own(fresh)
        current = os.path.basename(fresh)
        _point(directory, current)
    assert current is not None
    _tidy(directory, current, {path.split("/")[0] for path in payload})
    return changed


def _current(directory: str) -> str | None:
    try:
        target = os.readlink(os.path.join(directory, DATA))
    except FileNotFoundError:
        return None
    return target if os.path.isdir(os.path.join(directory, target)) else None


def _holds(directory: str, payload: Payload) -> bool:
    """Is exactly this in it already?"""
    found = {
        os.path.relpath(os.path.join(where, name), directory)
        for where, _, names in os.walk(directory)
        for name in names
    }
    normal = {os.path.normpath(path): file for path, file in payload.items()}
    return found == normal.keys() and all(
        _is_same(os.path.join(directory, path), file) for path, file in normal.items()
    )


def _is_same(path: str, file: File) -> bool:
    with open(path, "rb") as opened:
        status = os.fstat(opened.fileno())
        has_mode = stat.S_IMODE(status.st_mode) == stat.S_IMODE(file.mode)
        return status.st_size == len(file.data) and has_mode and opened.read() == file.data


def _write(directory: str, path: str, file: File) -> None:
    whole = os.path.join(directory, path)
    os.makedirs(os.path.dirname(whole), exist_ok=True)
    descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as opened:
        opened.write(file.data)
        if file.owner is not None:
            os.fchown(descriptor, file.owner, -1)
        os.fchmod(descriptor, stat.S_IMODE(file.mode))  # whatever the umask says


def _point(directory: str, target: str) -> None:
    link = os.path.join(directory, NEW_DATA)
    try:
        os.unlink(link)
    except FileNotFoundError:
        """The usual case: no write was interrupted here."""
    os.symlink(target, link)
    os.rename(link, os.path.join(directory, DATA))


def _tidy(directory: str, current: str, names: set[str]) -> None:
    """The visible links, and nothing beside them: also after a write that was cut short."""
    found = set(os.listdir(directory))
    for name in names - found:
        os.symlink(os.path.join(DATA, name), os.path.join(directory, name))
    for name in found - names - {DATA, current}:
        path = os.path.join(directory, name)
        if os.path.islink(path):
            os.unlink(path)
        elif name.startswith(".."):
            shutil.rmtree(path)
