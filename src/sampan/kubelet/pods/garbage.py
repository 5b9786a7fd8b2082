"""What may be thrown away.

Job: name the dead containers that nobody needs; remove the directories of pods that are gone.
Invariant: of each container the newest dead one stays: logs of the previous run come from it.
"""

import asyncio
import shutil
from collections.abc import Iterable
from pathlib import Path

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


async def remove_directories(paths: Iterable[Path]) -> None:
    there = [path for path in paths if path.is_dir()]
    if there:
        await asyncio.to_thread(_remove, there)


def _remove(paths: list[Path]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
