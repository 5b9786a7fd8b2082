"""A container's root: the image's layers below, a directory of its own above.

Job: mount and unmount the overlay; how much was written above.
Invariant: however many layers there are, their names fit into one mount call: they are named by
    open directories.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from sampan.kubelet.contracts.runtime import Layer
from sampan.kubelet.volumes.mounts import mount, unmount_all


def mount_root(directory: Path, lowers: Sequence[Path]) -> Path:
    """`lowers`: the lowest first. Blocking. Raises OSError."""
    upper, work, root = (directory / name for name in ("upper", "work", "rootfs"))
    empty = directory / "empty"  # an image without layers is a root without files
    for made in (upper, work, root, empty):
        made.mkdir(exist_ok=True)
    opened = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in (lowers or [empty])]
    try:
        below = ":".join(f"/proc/self/fd/{number}" for number in reversed(opened))
        # Its directories are those of the container, however long the path to them.
        options = f"lowerdir={below},upperdir={upper},workdir={work}"
        mount("overlay", str(root), "overlay", 0, options)
    finally:
        for number in opened:
            os.close(number)
    return root


def unmount_root(directory: Path) -> None:
    unmount_all(str(directory / "rootfs"))


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
