"""Log rotation: a container's log stays below its limits, however much it writes.

Job: when a log is too large, compress or remove the older ones, move it aside and have the runtime
    open a new one. Decided by `plan_rotation`, pure; carried out by `LogRotation`.
Invariant: the newest rotated file is never compressed: a reader may still be at it.
Invariant: if the runtime cannot open a new file, the old one is put back: no line is lost.
Owner: Kubelet, after each look at everything.
"""

import asyncio
import gzip
import os
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ContainerStatus,
    ObservedPod,
    Runtime,
    RuntimeFailure,
)

log = get_logger(__name__)

UNFINISHED = ".tmp"


@dataclass(frozen=True, slots=True)
class Rotation:
    """What to do with the files beside a log that is too large."""

    remove: tuple[str, ...]
    compress: tuple[str, ...]


def plan_rotation(log_name: str, names: Iterable[str], most_files: int) -> Rotation:
    """`names`: what is in the log's directory. As upstream: of `most_files`, one is the new log and
    one the log that is moved aside now; the others are older ones, compressed."""
    rotated = sorted(name for name in names if name.startswith(f"{log_name}."))
    unfinished = [name for name in rotated if name.endswith(UNFINISHED)]
    # A compressed file whose original is still there was not finished.
    doubled = [
        name for name in rotated if name.endswith(".gz") and name.removesuffix(".gz") in rotated
    ]
    whole = [name for name in rotated if name not in unfinished and name not in doubled]
    excess = whole[: max(0, len(whole) - max(most_files - 2, 0))]
    kept = whole[len(excess) :]
    return Rotation(
        remove=(*unfinished, *doubled, *excess),
        compress=tuple(name for name in kept if not name.endswith(".gz")),
    )


class LogRotation:
    def __init__(
        self, runtime: Runtime, log_dir: str, *, most_bytes: int, most_files: int, clock: Clock
    ) -> None:
        self._runtime, self._log_dir, self._clock = runtime, log_dir, clock
        self._most_bytes, self._most_files = most_bytes, most_files
        self._busy: set[str] = set()

    def too_large(self, pods: Iterable[ObservedPod]) -> list[tuple[ContainerStatus, Path]]:
        """One stat for each running container, so cheap that it needs no timer of its own."""
        found = []
        for pod in pods:
            folder = f"{self._log_dir}/{pod.namespace}_{pod.name}_{pod.uid}"
            for container in pod.containers:
                if container.state is not ContainerState.RUNNING or container.id in self._busy:
                    continue
                path = Path(folder, container.name, f"{container.attempt}.log")
                try:
                    if path.stat().st_size > self._most_bytes:
                        found.append((container, path))
                except OSError:
                    continue  # it has not written anything yet
        return found

    async def rotate(self, logs: Sequence[tuple[ContainerStatus, Path]]) -> None:
        for container, path in logs:
            self._busy.add(container.id)
            try:
                await self._rotate(container.id, path)
            except (OSError, RuntimeFailure) as error:
                log.warning("log was not rotated", path=path, error=error)
            finally:
                self._busy.discard(container.id)

    async def _rotate(self, container_id: str, path: Path) -> None:
        names = [item.name for item in path.parent.iterdir()]
        steps = plan_rotation(path.name, names, self._most_files)
        await asyncio.to_thread(_make_room, path.parent, steps)
        moment = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y%m%d-%H%M%S")
        aside = path.with_name(f"{path.name}.{moment}")
        os.rename(path, aside)
        try:
            await self._runtime.reopen_log(container_id)
        except RuntimeFailure:
            _put_back(aside, path)
            raise


def _put_back(aside: Path, path: Path) -> None:
    if not path.exists():
        aside.rename(path)


def _make_room(folder: Path, steps: Rotation) -> None:
    for name in steps.remove:
        (folder / name).unlink(missing_ok=True)
    for name in steps.compress:
        source, target = folder / name, folder / f"{name}.gz"
        unfinished = folder / f"{name}{UNFINISHED}"
        with source.open("rb") as plain, gzip.open(unfinished, "wb", compresslevel=6) as packed:
            shutil.copyfileobj(plain, packed)
        os.replace(unfinished, target)
        source.unlink()
