"""The checkpoint file of allocated resources.

Job: a line for each change, read at a start, written anew when most of its lines say nothing more.
Invariant: after `stored`, all that was put before is on the disk; the event loop waits for the disk
    only where the file is written anew.
Invariant: a line that was cut off (the machine lost its power) is as none.
Owner: Allocations.
"""

import asyncio
import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sampan.core.files.json_files import Damaged, object_in
from sampan.core.log import get_logger

log = get_logger(__name__)

MOST_CHANGES = 500  # lines, before the file is written anew
Given = Mapping[str, Any]  # what one pod has, by container


class AllocationCheckpoint:
    def __init__(self, path: str) -> None:
        """`path`: empty: nothing is remembered."""
        self._path = path
        self._changes = 0  # lines since it was written anew
        self._written = self._synced = 0
        self._turn = asyncio.Lock()

    def read(self) -> dict[str, Given]:
        if not self._path:
            return {}
        found: dict[str, Given] = {}
        try:
            for line in Path(self._path).read_bytes().splitlines():
                _apply(line, found)
                self._changes += 1
        except FileNotFoundError:
            pass
        except OSError as error:
            # As upstream: what cannot be read is as if it were not there; pods are admitted anew.
            log.warning("checkpoint was not read", path=self._path, error=error)
        return found

    def put(self, uid: str, given: Given | None, everything: Mapping[str, Given]) -> None:
        """`given`: None: nothing any more. `everything`: what all pods have now. Raises OSError."""
        if not self._path:
            return
        if self._changes >= MOST_CHANGES + len(everything):
            self.replace(everything)
            return
        line = b"\n" + json.dumps({"uid": uid, "given": given}).encode()
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            if os.write(file, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        finally:
            os.close(file)
        self._changes += 1
        self._written += 1

    def replace(self, everything: Mapping[str, Given]) -> None:
        """Raises OSError."""
        if not self._path:
            return
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        beside = f"{self._path}.new"
        with open(beside, "w") as file:
            json.dump({"allocations": everything}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self._path)
        self._changes = 0
        self._synced = self._written

    async def stored(self) -> None:
        """One wait for the disk serves all who came before it. Raises OSError."""
        upto = self._written
        if self._synced >= upto:
            return
        async with self._turn:
            if self._synced < upto:
                upto = self._written
                await asyncio.to_thread(_sync, self._path)
                self._synced = max(self._synced, upto)


def _apply(line: bytes, found: dict[str, Given]) -> None:
    try:
        if not line:
            return
        said = object_in(line)
        changed = said["allocations"] if "allocations" in said else {said["uid"]: said["given"]}
        for uid, given in changed.items():
            if given is None:
                found.pop(uid, None)
            elif _is_given(given):
                found[uid] = given
            else:
                log.warning(
                    "allocated resources of a pod are lost: its checkpoint entry is unreadable",
                    uid=uid,
                )
    except (Damaged, KeyError, TypeError, AttributeError) as error:
        log.warning("checkpoint entry unreadable, skipped", error=error)


def _is_given(said: object) -> bool:
    """By container, what it has by resource."""
    return isinstance(said, dict) and all(
        isinstance(kinds, dict) and all(isinstance(each, dict) for each in kinds.values())
        for kinds in said.values()
    )


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fdatasync(file)
    finally:
        os.close(file)
