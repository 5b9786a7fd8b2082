"""What the driver remembers of volumes and snapshots: one JSON file each. Blocking.

Job: read, write and remove records; what is half made is not there.
Invariant: a record is written last when something is made, and goes last when it is removed.
Owner: the driver's process; there is one for a directory.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.remove_tree import remove_tree
from sampan.core.patterns import lazy_pattern

_SAFE = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_RECORD = "record.json"


@dataclass(frozen=True, slots=True)
class Volume:
    id: str
    name: str
    kind: str  # directory | loop
    size_bytes: int
    block: bool = False
    fs_type: str = ""
    from_snapshot: str = ""
    from_volume: str = ""
    ephemeral: bool = False
    attached_to: str = ""  # the node's id
    attached_read_only: bool = False
    mutable: dict[str, str] = field(default_factory=dict)  # of a VolumeAttributesClass


@dataclass(frozen=True, slots=True)
class Snapshot:
    id: str
    name: str
    volume: str
    kind: str
    size_bytes: int
    made_at: float
    fs_type: str = ""
    block: bool = False


def id_of(name: str) -> str:
    """The same for the same name; a name that is no file's is hashed."""
    if _SAFE.fullmatch(name):
        return name
    return hashlib.sha256(name.encode()).hexdigest()[:40]


class Records:
    def __init__(self, root: str) -> None:
        self._volumes, self._snapshots = Path(root) / "volumes", Path(root) / "snapshots"
        for directory in (self._volumes, self._snapshots):
            directory.mkdir(parents=True, exist_ok=True)

    def volume_place(self, volume_id: str) -> Path:
        return self._volumes / volume_id

    def snapshot_place(self, snapshot_id: str) -> Path:
        return self._snapshots / snapshot_id

    def volume(self, volume_id: str) -> Volume | None:
        found = _read(self._volumes, volume_id)
        return Volume(**found) if found is not None else None

    def snapshot(self, snapshot_id: str) -> Snapshot | None:
        found = _read(self._snapshots, snapshot_id)
        return Snapshot(**found) if found is not None else None

    def volumes(self) -> list[Volume]:
        return [found for name in _names(self._volumes) if (found := self.volume(name))]

    def snapshots(self) -> list[Snapshot]:
        return [found for name in _names(self._snapshots) if (found := self.snapshot(name))]

    def keep_volume(self, volume: Volume) -> None:
        _write(self.volume_place(volume.id), asdict(volume))

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        _write(self.snapshot_place(snapshot.id), asdict(snapshot))

    def remove(self, place: Path) -> None:
        """The record last: who asks again after a kill finds what is left. Raises OSError."""
        if not place.is_dir():
            return
        for entry in [*place.iterdir()]:
            if entry.is_dir() and not entry.is_symlink():
                remove_tree(entry)
            elif entry.name != _RECORD:
                entry.unlink()
        remove_tree(place)

    def sweep(self) -> None:
        """What an earlier process had begun to make, and nobody has asked for again."""
        for parent in (self._volumes, self._snapshots):
            for place in [*parent.iterdir()]:
                if not (place / _RECORD).exists():
                    with contextlib.suppress(OSError):  # something may be mounted there
                        self.remove(place)


def _read(parent: Path, name: str) -> dict[str, Any] | None:
    if not _SAFE.fullmatch(name):
        return None
    try:
        found: dict[str, Any] = json.loads((parent / name / _RECORD).read_text())
    except (OSError, ValueError):
        return None
    return found


def _write(place: Path, record: dict[str, object]) -> None:
    place.mkdir(exist_ok=True)
    new = place / f"{_RECORD}.new"
    with open(new, "w") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())
    new.rename(place / _RECORD)


def _names(parent: Path) -> Iterator[str]:
    return iter(sorted(entry.name for entry in parent.iterdir()))
