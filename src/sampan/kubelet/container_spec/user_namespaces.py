"""Which ids of the node stand behind the users of a pod with `hostUsers: false`.

Job: give every such pod a range of its own, and the same one again after a restart.
Invariant: no two pods that have a directory on this node share an id, and none has the node's own.
Owner: the Performer. The record is in the pod's directory, so it goes when the pod goes.
"""

import json
import os
from pathlib import Path

from sampan.core.files.json_files import Damaged, json_object
from sampan.kubelet.contracts.runtime import IdRange

# As upstream without subordinate ids of a kubelet user: 65536 ids each, none of the node's own.
LENGTH = 65_536
_LAST = 2**32 // LENGTH - 1
_RECORD = "userns"


class NoIdsLeft(Exception):
    """Every range is taken, or the record cannot be kept."""


class UserNamespaces:
    def __init__(self, root_dir: str) -> None:
        self._pods = Path(root_dir) / "pods"

    def range_of(self, uid: str) -> IdRange:
        """The pod's range; the first free one where it has none yet. Raises NoIdsLeft."""
        known = self._read(self._pods / uid / _RECORD)
        if known is not None:
            return known
        taken = {found.first for found in self._record()}
        for number in range(1, _LAST):
            if number * LENGTH not in taken:
                made = IdRange(number * LENGTH, LENGTH)
                self._write(uid, made)
                return made
        raise NoIdsLeft("could not find an empty slot to allocate a user namespace")

    def _record(self) -> list[IdRange]:
        found = (self._read(path) for path in self._pods.glob(f"*/{_RECORD}"))
        return [match_ for match_ in found if match_ is not None]

    def _read(self, path: Path) -> IdRange | None:
        try:
            (mapping,) = json_object(path)["uidMappings"]
            return IdRange(int(mapping["hostId"]), int(mapping["length"]))
        except (Damaged, ValueError, KeyError, TypeError, OverflowError):
            return None

    def _write(self, uid: str, made: IdRange) -> None:
        """In upstream's form, and whole or not at all."""
        mapping = {"hostId": made.first, "containerId": 0, "length": made.length}
        path = self._pods / uid / _RECORD
        try:
            path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            unfinished = path.with_suffix(".new")
            unfinished.write_text(json.dumps({"uidMappings": [mapping], "gidMappings": [mapping]}))
            os.replace(unfinished, path)
        except OSError as error:
            raise NoIdsLeft(f"the user namespace cannot be recorded: {error}") from error
