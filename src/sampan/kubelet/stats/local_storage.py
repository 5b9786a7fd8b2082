"""Ephemeral storage used by a pod: emptyDirs, logs and writable layers.

Job: walk directories (in a thread) and ask the runtime for writable layers → a LocalStorage.
Invariant: no link is followed; what goes away meanwhile, or is not known, counts as nothing.
Invariant: however deep directories are, what is in them is counted, and no other pod's is missed.
Owner: EvictionManager.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.kubelet.contracts.paths import pod_directory
from sampan.kubelet.contracts.runtime import Runtime, RuntimeFailure
from sampan.kubelet.eviction.storage_limits import LocalStorage
from sampan.kubelet.stats.node_stats import PodUsage

log = get_logger(__name__)

_EMPTY_DIRS = "volumes/kubernetes.io~empty-dir"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LONG_PATH, MOST_OPEN = 500, 256  # characters, directories


@dataclass(frozen=True, slots=True)
class Taken:
    size: int = 0
    files: int = 0


async def measure(runtime: Runtime, one: PodUsage, root_dir: str, log_dir: str) -> LocalStorage:
    volumes, logs = await asyncio.to_thread(on_disk, one.pod, root_dir, log_dir)
    written = {name: taken.size for name, taken in logs.items()}
    for inside in one.containers:
        name = inside.status.name
        written[name] = written.get(name, 0) + await _layer(runtime, inside.status.id)
    files = sum(taken.files for taken in (*volumes.values(), *logs.values()))
    return LocalStorage({name: taken.size for name, taken in volumes.items()}, written, files)


async def _layer(runtime: Runtime, container_id: str) -> int:
    try:
        return await runtime.layer_bytes(container_id)
    except RuntimeFailure as error:
        log.debug("a container's layer was not measured", container=container_id, error=error)
        return 0


def on_disk(pod: Obj, root_dir: str, log_dir: str) -> tuple[dict[str, Taken], dict[str, Taken]]:
    """By the names of its volumes, and of its containers."""
    base = Path(pod_directory(uid_of(pod), root_dir))
    folder = f"{namespace_of(pod)}_{name_of(pod)}_{uid_of(pod)}"
    return (
        {path.name: taken_by(path) for path in (base / _EMPTY_DIRS).glob("*")},
        {path.name: taken_by(path) for path in Path(log_dir, folder).glob("*")},
    )


def taken_by(directory: Path) -> Taken:
    """As `du`: blocks, of directories too; a file with several names once."""
    seen: set[tuple[int, int]] = set()
    size = 0
    for status in _below(directory):
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            size += status.st_blocks * 512
    return Taken(size, len(seen))


def _below(directory: Path) -> Iterator[os.stat_result]:
    """Of everything in it. A pod may nest directories as deeply as it likes: neither the stack nor
    the length of a path ends the walk. What lies far down is opened from an ancestor that is open
    already; MOST_OPEN of them are, and only what is below the last one is not seen."""
    opened: list[int] = []
    waiting = [(0, str(directory))]  # of which of those that are open, where
    try:
        while waiting:
            level, place = waiting.pop()
            while len(opened) > level:  # all below them was seen
                os.close(opened.pop())
            try:
                here = os.open(place, _DIRECTORY, dir_fd=opened[-1] if opened else None)
            except OSError:
                continue  # it went away while we looked
            opened.append(here)
            # The next ones are looked for from here, or, for as long as that is near, from above.
            inside = (level + 1, ".")
            if opened[:-1] and (len(place) < LONG_PATH or len(opened) > MOST_OPEN):
                inside = (level, place)
            with contextlib.suppress(OSError), os.scandir(here) as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    yield status
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append((inside[0], f"{inside[1]}/{entry.name}"))
    finally:
        for each in opened:
            os.close(each)
