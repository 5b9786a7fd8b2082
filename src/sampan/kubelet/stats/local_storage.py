"""Ephemeral storage used by a pod: emptyDirs, logs and writable layers.

Job: walk directories (in a thread) and ask the runtime for writable layers → a LocalStorage.
Invariant: no link is followed; what goes away meanwhile, or is not known, counts as nothing.
Owner: EvictionManager.
"""

import asyncio
import os
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
    for root, folders, files in os.walk(directory):
        for name in (*files, *folders):
            try:
                status = os.lstat(os.path.join(root, name))
            except OSError:
                continue  # it went away while we looked
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                size += status.st_blocks * 512
    return Taken(size, len(seen))
