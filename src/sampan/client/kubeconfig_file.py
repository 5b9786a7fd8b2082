"""kubeconfig files as we write them: a context put in, a context taken out.

Job: change one file; say which contexts it has.
Invariant: a written file is 0600, whole at every moment, and keeps what others put there.
"""

import base64
import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sampan.api.objects import Obj
from sampan.client import kubeconfig, plain_yaml
from sampan.client.kubeconfig import Connection, KubeconfigError, document_of
from sampan.client.kubeconfig_types import SECTIONS


def default_path(environment: Mapping[str, str], home: str) -> Path:
    """Where kubectl writes: the first file of $KUBECONFIG, else ~/.kube/config."""
    listed = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(listed[0]).absolute() if listed else Path(home) / ".kube" / "config"


def write_kubeconfig(
    path: str | Path, connection: Connection, name: str = "sampan", *, use: bool = True
) -> None:
    """Put cluster, user and context `name` into the file; all else stays. `use` makes it the
    current one, as it becomes where there is none."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone_in(path.parent):
        _write_context(path, connection, name, use=use)


def _write_context(path: Path, connection: Connection, name: str, *, use: bool) -> None:
    document = document_of(str(path)) if path.exists() else {}
    user = f"{name}-admin"
    context = {"cluster": name, "user": user}
    assert connection.ca is not None, "a cluster of our own has its own authority"
    assert connection.pair is not None, "an administrator has a certificate"
    cluster = {"server": connection.server, "certificate-authority-data": _base64(connection.ca)}
    certificate, key = connection.pair
    identity = {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}
    written = {
        **document,
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": _with_entry(document, "clusters", name, cluster),
        "users": _with_entry(document, "users", user, identity),
        "contexts": _with_entry(document, "contexts", name, context),
        "current-context": name if use else document.get("current-context") or name,
    }
    written.setdefault("preferences", {})
    if written == document:
        return  # as it is after every start on the same port
    write_whole(path, _text(written))


def current_context(path: Path) -> str:
    """Of this one file; empty where there is none."""
    return str((document_of(str(path)) if path.exists() else {}).get("current-context") or "")


def authority_of(path: Path, context: str) -> bytes | None:
    """The authority that the context's cluster names: which cluster it is. None: no such context.
    One that names none, or none that can be read, is of somebody else all the same."""
    if not path.exists():
        return None
    config = kubeconfig.load(str(path), {}, "")
    if context not in config.contexts:
        return None
    cluster = config.clusters.get(str(config.contexts[context].get("cluster") or "")) or {}
    try:
        return kubeconfig.bytes_of(cluster, "certificate-authority") or b""
    except KubeconfigError:
        return b""


def remove_context(path: Path, name: str, before: str = "") -> bool:
    """Take out what `write_kubeconfig` put there under this name; all else stays. Where it was the
    current one, `before` is again, if that is still there."""
    if not path.exists():
        return False
    with alone_in(path.parent):
        return _remove_context(path, name, before)


def _remove_context(path: Path, name: str, before: str) -> bool:
    document = document_of(str(path))
    names = {"contexts": name, "clusters": name, "users": f"{name}-admin"}
    if name not in [entry.get("name") for entry in document.get("contexts") or []]:
        return False
    for section, own in names.items():
        entries = document.get(section) or []
        document[section] = [entry for entry in entries if entry.get("name") != own]
    if document.get("current-context") == name:
        left = [entry.get("name") for entry in document["contexts"]]
        document["current-context"] = before if before in left else ""
    write_whole(path, _text(document))
    return True


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Two clusters that start at once both change the file: one after the other, by a lock on its
    directory, which leaves nothing behind."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _with_entry(document: Obj, section: str, name: str, value: Obj) -> list[Obj]:
    others = [entry for entry in document.get(section) or [] if entry.get("name") != name]
    return [*others, {"name": name, SECTIONS[section]: value}]


def _text(document: Obj) -> bytes:
    try:
        return plain_yaml.write(document).encode()
    except plain_yaml.Unusual:
        import yaml

        return yaml.safe_dump(document, sort_keys=False).encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def write_whole(path: Path, data: bytes) -> None:
    """Under another name first: a reader sees the old file or the new one, never half of it. What
    links point to is written, and the links stay."""
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)  # of a process that ended in the middle, or somebody's trap
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(beside, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
