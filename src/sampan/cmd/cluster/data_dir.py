"""The data directory: one cluster's home on disk, and the lock that says who lives in it.

Job: create it, check that it is ours and not from the future, lock it, find who holds it.
Invariant: a process works in a data directory only while it holds the lock; the kernel drops the
    lock when the process dies, so a stale pid is never taken for a living one.
Invariant: the directory is 0700; nothing of the cluster is readable by others.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass

FORMAT = 1
OWN_STORE = "sqlite:"  # in the record: the file in this directory, wherever that is now


class DataDirError(Exception):
    """One sentence for the user, saying what to do."""


@dataclass(frozen=True, slots=True)
class DataDir:
    root: Path

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def store(self) -> Path:
        return self.root / "store.db"

    @property
    def kubelet(self) -> Path:
        return self.root / "kubelet"

    @property
    def csi(self) -> Path:
        """Volumes of the driver that `--with csi` brings."""
        return self.root / "csi"

    @property
    def log_file(self) -> Path:
        return self.root / "sampan.log"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def context_name(self) -> str:
        """In a kubeconfig that several clusters share: after the directory, so they keep apart."""
        is_plain = self.root.name in ("sampan-data", "default")
        return "sampan" if is_plain else f"sampan-{self.root.name}"

    @property
    def sockets(self) -> Path:
        """Between the processes of one cluster."""
        return self.root / "sockets"

    @property
    def processes_file(self) -> Path:
        """Which processes there are, where a cluster is several."""
        return self.root / "processes.json"

    @property
    def lock_file(self) -> Path:
        return self.root / "lock"

    @property
    def format_file(self) -> Path:
        return self.root / "format"

    @property
    def record_file(self) -> Path:
        """What the last start chose and the next one should keep (ports, node name)."""
        return self.root / "record.json"

    def record(self) -> dict[str, Any]:
        try:
            found: Any = json.loads(self.record_file.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        # Everything in it can be chosen again: somebody's edits stop nothing.
        return found if isinstance(found, dict) else {}

    def remember(self, **facts: Any) -> None:
        """Nothing is written where it is known: a start again does not wait for the disk."""
        known = self.record()
        if known != (new := {**known, **facts}):
            write_private(self.record_file, json.dumps(new, indent=1).encode())


def store_url(data: DataDir) -> str:
    """Where the last start of the cluster kept its objects."""
    url = str(data.record().get("store") or OWN_STORE)
    return f"sqlite:///{data.store}" if url == OWN_STORE else url


class Lock:
    """Held from `take` until `release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor  # whoever inherits it holds the lock, too

    @classmethod
    def take(cls, data: DataDir) -> "Lock":
        descriptor = os.open(data.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise DataDirError(
                f"{data.root} is in use by process {holder(data)}: "
                f"stop it with `sampan down --data-dir {data.root}`, or choose another --data-dir"
            ) from None
        # Always as long, and never cut: whoever finds the lock held finds a whole pid in it.
        os.pwrite(descriptor, f"{os.getpid():<20}".encode(), 0)
        return cls(descriptor)

    def release(self) -> None:
        os.close(self.descriptor)


def holder(data: DataDir) -> int | None:
    """The pid of the process that holds the lock now; None where nobody does."""
    try:
        descriptor = os.open(data.lock_file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.read(descriptor, 32) or b"0")
    else:
        return None
    finally:
        os.close(descriptor)


def open_data_dir(path: str) -> DataDir:
    """The directory, made if it is not there, checked if it is."""
    data = DataDir(Path(path).absolute())
    try:
        data.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        _check_format(data)
        data.root.chmod(0o700)
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        raise DataDirError(
            f"cannot use {data.root} as data directory ({error.strerror}): "
            "choose a directory that you may write with --data-dir"
        ) from error
    except OSError as error:
        raise DataDirError(f"cannot use {data.root} as data directory: {error}") from error
    return data


def find_data_dir(path: str) -> DataDir:
    """The directory of a cluster that exists; for the commands that only look for one."""
    data = DataDir(Path(path).absolute())
    try:
        is_there = data.format_file.exists()
    except PermissionError:
        raise DataDirError(
            f"the cluster in {data.root} belongs to {_owner(data.root)}: do this as that user"
        ) from None
    if not is_there:
        raise DataDirError(
            f"there is no sampan cluster in {data.root}: start one with `sampan up`, or say where "
            "it is with --name (`sampan list`) or --data-dir"
        )
    return data


def _owner(path: Path) -> str:
    import pwd

    try:
        return pwd.getpwuid(path.stat().st_uid).pw_name
    except (KeyError, OSError):
        return "another user"


def write_private(path: Path, content: bytes) -> None:
    """Replace the file in one step, readable by its owner only."""
    write_all_private({path: content})


def write_all_private(contents: Mapping[Path, bytes]) -> None:
    """Each file as `write_private` does. All of them are durable when it returns, in far less time
    than one after the other takes: the disk is told to write when everything is there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.ExitStack() as opened:
        files = []
        for path, content in contents.items():
            temporary = _temporary(path)
            temporary.unlink(missing_ok=True)  # of a process that ended in the middle, or a trap
            descriptor = os.open(temporary, flags, 0o600)
            file = opened.enter_context(os.fdopen(descriptor, "wb"))
            file.write(content)
            file.flush()
            files.append(file)
        for file in files:
            os.fsync(file.fileno())
    for path in contents:
        os.replace(_temporary(path), path)
    for directory in {path.parent for path in contents}:
        _sync_directory(directory)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _sync_directory(path: Path) -> None:
    """What lies in it under which name is on the disk as well."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_format(data: DataDir) -> None:
    try:
        text = data.format_file.read_text()
    except FileNotFoundError:
        # Keys and certificates may be there first: of another process of the same cluster.
        if any(entry.name not in {"lock", "pki"} for entry in data.root.iterdir()):
            raise DataDirError(
                f"{data.root} is not empty and holds no sampan cluster: choose another --data-dir"
            ) from None
        write_private(data.format_file, f"{FORMAT}\n".encode())
        return
    if not is_digits(text.strip()):
        raise DataDirError(
            f"{data.format_file} is damaged (it says {text.strip()[:40]!r}): put it back from a "
            f"backup, or remove the cluster with `sampan reset --data-dir {data.root}`"
        )
    if int(text) > FORMAT:
        raise DataDirError(
            f"{data.root} was written by a newer sampan (format {int(text)}; this one knows "
            f"{FORMAT}): upgrade sampan, or choose another --data-dir"
        )
