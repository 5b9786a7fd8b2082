"""hostPath volumes: type checks, and what the types create.

Job: the check of each hostPath type, with upstream's words; DirectoryOrCreate and FileOrCreate.
"""

import os
import stat
from collections.abc import Callable

from sampan.kubelet.contracts.volumes_hook import VolumeFailure

_DIRECTORY_MODE, _FILE_MODE = 0o755, 0o644
_CHECKS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "File": (lambda mode: not stat.S_ISDIR(mode), "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


def check_host_path(path: str, kind: str) -> None:
    """Raises VolumeFailure."""
    if not kind:
        return  # as upstream: the runtime takes what is there, and makes a directory of nothing
    try:
        if kind.endswith("OrCreate"):
            _create(path, kind)
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise VolumeFailure(f"hostPath type check failed: {path}: {error.strerror}") from error
    fits, what = _CHECKS[kind.removesuffix("OrCreate")]
    if mode is None or not fits(mode):
        raise VolumeFailure(f"hostPath type check failed: {path} is not {what}")


def _create(path: str, kind: str) -> None:
    if os.path.exists(path):
        return
    if kind == "DirectoryOrCreate":
        os.makedirs(path, _DIRECTORY_MODE)
        os.chmod(path, _DIRECTORY_MODE)
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
    os.fchmod(descriptor, _FILE_MODE)
    os.close(descriptor)
