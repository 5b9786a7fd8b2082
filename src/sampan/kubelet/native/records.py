"""What is known of sandboxes and containers, on the disk beside them.

Job: one directory each, with one small file; read them all at a start.
Invariant: a record is there before anything that it names, and goes after it: whatever a killed
    process left is found by its record.
Invariant: a file that is cut off (the machine lost its power) is a record of nothing that runs.
Invariant: a change is a line more, never a file in the place of another: there a file system writes
    to the disk first, which takes longer than a container's start.
"""

import contextlib
import errno
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.json_files import Damaged, object_in
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
    user: tuple[int, ...] = ()  # uid, gid, and the groups beside it; once it was started
    started_at: float = 0.0
    failure: str = ""  # why it could not be started
    failed_at: float = 0.0


Record = TypeVar("Record", SandboxRecord, ContainerRecord)
_FILE = "record.json"  # a line for each change; the last whole one counts


class Records(Generic[Record]):
    def __init__(self, directory: Path, kind: type[Record]) -> None:
        self._directory = directory
        self._kind: type[Record] = kind
        directory.mkdir(parents=True, exist_ok=True)

    def place(self, id_: str) -> Path:
        return self._directory / id_

    def put(self, record: Record) -> None:
        """Raises OSError."""
        said = {item.name: getattr(record, item.name) for item in fields(record)}
        place = self.place(record.id)
        place.mkdir(exist_ok=True, mode=0o711)
        file = os.open(place / _FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            line = f"\n{json.dumps(said)}".encode()
            if os.write(file, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
        finally:
            os.close(file)

    def remove(self, id_: str) -> None:
        """The record goes last. Raises OSError where something below is still mounted."""
        place = self.place(id_)
        if not place.exists():
            return
        for entry in place.iterdir():
            if entry.name == _FILE:
                continue
            if entry.is_dir() and not entry.is_symlink():
                remove_tree(entry)
            else:
                entry.unlink()
        remove_tree(place)

    def all(self) -> Iterator[Record]:
        for place in self._directory.iterdir():
            try:
                lines = (place / _FILE).read_text().splitlines()
            except (OSError, ValueError):
                continue
            for line in reversed(lines):
                with contextlib.suppress(Damaged, TypeError):
                    yield self._of(object_in(line.encode()))
                    break

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
