"""What is known of sandboxes and containers, on the disk beside them.

Job: one directory each, with one small JSON file; read them all at a start.
Invariant: a record is there before anything that it names, and goes after it: whatever a killed
    process left is found by its record.
Invariant: a file that is cut off (the machine lost its power) is a record of nothing that runs.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.remove_tree import remove_tree


@dataclass(frozen=True, slots=True)
class SandboxRecord:
    id: str
    name: str
    namespace: str
    uid: str
    attempt: int
    created_at: float
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    ips: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()  # net, ipc, uts: those of its own
    host_network: bool = False
    shares_processes: bool = False
    ready: bool = False


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    id: str
    sandbox_id: str
    name: str
    attempt: int
    image: str  # as the pod's spec has it
    image_id: str
    created_at: float
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    layers: tuple[str, ...] = ()  # diff ids that its root stands on
    log_path: str = ""
    stop_signal: str = "SIGTERM"
    terminal: bool = False
    stdin: bool = False
    stdin_once: bool = False
    started_at: float = 0.0
    failure: str = ""  # why it could not be started
    failed_at: float = 0.0


Record = TypeVar("Record", SandboxRecord, ContainerRecord)


class Records(Generic[Record]):
    def __init__(self, directory: Path, kind: type[Record]) -> None:
        self._directory = directory
        self._kind: type[Record] = kind
        directory.mkdir(parents=True, exist_ok=True)

    def place(self, id_: str) -> Path:
        return self._directory / id_

    def put(self, record: Record) -> None:
        place = self.place(record.id)
        place.mkdir(exist_ok=True, mode=0o711)
        fresh = place / "record.new"
        fresh.write_text(json.dumps(asdict(record)))
        fresh.replace(place / "record.json")

    def remove(self, id_: str) -> None:
        """The record goes last. Raises OSError where something below is still mounted."""
        place = self.place(id_)
        if not place.exists():
            return
        for entry in place.iterdir():
            if entry.name == "record.json":
                continue
            if entry.is_dir() and not entry.is_symlink():
                remove_tree(entry)
            else:
                entry.unlink()
        remove_tree(place)

    def all(self) -> Iterator[Record]:
        for place in self._directory.iterdir():
            try:
                yield self._of(json.loads((place / "record.json").read_text()))
            except (OSError, ValueError, TypeError, KeyError):
                continue

    def broken(self) -> list[str]:
        """Directories without a record that can be read."""
        known = {record.id for record in self.all()}
        return [place.name for place in self._directory.iterdir() if place.name not in known]

    def _of(self, found: dict[str, Any]) -> Record:
        lists = {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
        record: Record = self._kind(**{**found, **lists})
        return record


def layers_in(directory: Path) -> set[str]:
    """The diff ids that the containers with records there stand on; blocking."""
    if not directory.is_dir():
        return set()
    return {
        layer for record in Records(directory, ContainerRecord).all() for layer in record.layers
    }
