"""fsGroup: a volume that belongs to a group of the pod's processes.

Job: chown and chmod a directory tree as upstream does: group, group rights, setgid directories.
Invariant: symbolic links are given away, never followed.
Invariant: as upstream, what cannot be given is left as it is (an export that maps root to nobody,
    a file system that is read-only), and that is logged; only what cannot be listed is an error.
"""

import os
import stat

from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger

log = get_logger(__name__)

GROUP_READS = 0o440
_WRITABLE, _ENTER = 0o660, 0o110


@dataclass(slots=True)
class Walked:
    """How far it has come; another thread may look."""

    files: int = 0
    failures: int = 0


def give_to_group(
    directory: str,
    group: int,
    *,
    read_only: bool = False,
    only_on_mismatch: bool = False,
    walked: Walked | None = None,
) -> None:
    """`only_on_mismatch`: leave everything as it is when the directory itself is already right.
    Raises OSError."""
    if only_on_mismatch and _is_right(directory, group, read_only):
        return
    walked = walked if walked is not None else Walked()
    for _, names, files, descriptor in os.fwalk(directory, topdown=False, onerror=_raised):
        for name in [*files, *names]:
            walked.files += 1
            try:
                _give(name, descriptor, group, read_only)
            except OSError as error:
                _not_given(walked, f"{directory}: {name}", error)
    # Last, so that an interrupted change is seen as a mismatch and done again.
    walked.files += 1
    try:
        give_root_to_group(directory, group, read_only=read_only)
    except OSError as error:
        _not_given(walked, directory, error)


def _raised(error: OSError) -> None:
    raise error


def _not_given(walked: Walked, path: str, error: OSError) -> None:
    """Said once: there may be millions of them."""
    walked.failures += 1
    if walked.failures == 1:
        log.warning("fsGroup cannot be set, and perhaps not on others", path=path, error=error)


def give_root_to_group(directory: str, group: int, *, read_only: bool = False) -> None:
    os.chown(directory, -1, group)
    os.chmod(directory, stat.S_IMODE(os.stat(directory).st_mode) | _rights(True, read_only))


def _rights(is_directory: bool, read_only: bool) -> int:
    rights = GROUP_READS if read_only else _WRITABLE
    return rights | _ENTER | stat.S_ISGID if is_directory else rights


def _is_right(directory: str, group: int, read_only: bool) -> bool:
    status = os.stat(directory)
    wanted = _rights(True, read_only)
    return status.st_gid == group and status.st_mode & wanted == wanted


def _give(name: str, parent: int, group: int, read_only: bool) -> None:
    mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    os.chown(name, -1, group, dir_fd=parent, follow_symlinks=False)
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return
    wanted = stat.S_IMODE(mode) | _rights(stat.S_ISDIR(mode), read_only)
    try:
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
    except OSError:
        return  # replaced by something else while we looked: not ours to change
    try:
        os.fchmod(opened, wanted)
    finally:
        os.close(opened)
