"""Container GC: which dead containers and sandboxes may be removed.

Job: name the dead containers that nobody needs; remove the directories of pods that are gone.
Invariant: of each container the newest dead one stays: logs of the previous run come from it.
"""

import asyncio
import os
import shutil
from collections.abc import Iterable

from sampan.kubelet.contracts.runtime import ContainerState, ObservedPod


def dead_containers(observed: ObservedPod) -> list[str]:
    """Ids of containers that ended and are not the newest ended one of their name."""
    seen: set[str] = set()
    dead = []
    for container in observed.containers:  # newest first
        if container.state is not ContainerState.EXITED:
            continue
        if container.name in seen:
            dead.append(container.id)
        seen.add(container.name)
    return dead


def dead_sandboxes(observed: ObservedPod) -> list[str]:
    """Sandboxes that were replaced, and hold no container that is still needed."""
    kept = {container.sandbox_id for container in observed.containers}
    return [
        sandbox.id
        for sandbox in observed.sandboxes[1:]
        if not sandbox.ready and sandbox.id not in kept
    ]


async def remove_directories(paths: Iterable[str]) -> None:
    there = _existing(paths)
    if there:
        await asyncio.to_thread(_remove, there)


def _existing(paths: Iterable[str]) -> list[str]:
    """Asked at once: nearly no simulated pod has any, and a thread would cost far more."""
    return [path for path in paths if os.path.isdir(path)]


def _remove(paths: list[str]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
