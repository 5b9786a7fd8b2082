"""State file of a resource manager: cpu_manager_state, memory_manager_state.

Job: write it whole before anything is started because of it, read it at the next start.
Invariant: what was said last is what is on disk after `stored`, whoever else writes meanwhile.
Invariant: what cannot be read, or was written by another policy, is refused with the file's name:
    containers may be running by it.
"""

import asyncio
import json
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sampan.core.files.json_files import Damaged, json_object
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks

log = get_logger(__name__)


class BadState(Exception):
    """In upstream's words: the agent does not start with it."""

    def __init__(self, manager: str, path: str, why: object) -> None:
        super().__init__(
            f"could not restore state from checkpoint: {why}, please drain this node and delete "
            f'the {manager} manager checkpoint file "{path}" before restarting Kubelet'
        )


class StateFile:
    def __init__(
        self, path: str, policy: str, said: Callable[[], Mapping[str, Any]], tasks: Tasks
    ) -> None:
        """`said`: what is to be kept, as it is now."""
        self._path, self._policy, self._said, self._tasks = path, policy, said, tasks
        self._turn = asyncio.Lock()

    async def stored(self) -> None:
        """Raises OSError."""
        async with self._turn:
            written = {"policyName": self._policy, **self._said()}
            text = json.dumps({**written, "checksum": _checksum(written)})
            await asyncio.to_thread(write_whole, self._path, text)

    def store_soon(self) -> None:
        """For what the next start finds out by itself."""
        self._tasks.start(f"store {os.path.basename(self._path)}", self._store())

    async def _store(self) -> None:
        try:
            await self.stored()
        except OSError as error:
            log.warning("state of a resource manager was not written", path=self._path,
                        error=error)  # fmt: skip


def read_state(manager: str, path: str, policy: str) -> dict[str, Any] | None:
    """None: there is none. Blocking. Raises BadState."""
    if not os.path.exists(path):
        return None
    try:
        written = json_object(Path(path))
    except Damaged as error:
        raise BadState(manager, path, error) from error
    said = written.pop("checksum", None)
    if said != _checksum(written):
        raise BadState(manager, path, "checkpoint is corrupted")
    if written.get("policyName") != policy:
        found = written.get("policyName")
        why = f'configured policy "{policy}" differs from state checkpoint policy "{found}"'
        raise BadState(manager, path, why)
    return written


def write_whole(path: str, text: str) -> None:
    """The old one or the new one is there, whenever the power goes. Blocking. Raises OSError."""
    os.makedirs(os.path.dirname(path), 0o750, exist_ok=True)
    with open(f"{path}.new", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{path}.new", path)


def _checksum(written: object) -> int:
    return zlib.crc32(json.dumps(written, sort_keys=True).encode())
