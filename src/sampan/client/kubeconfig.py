"""kubeconfig: where the API is and who we are there.

Job: find, merge and read kubeconfig files as kubectl does; turn one context into a Connection;
    write a context into a file.
Invariant: of several files the first one that sets a thing wins; paths are relative to their file.
Invariant: what we cannot do (auth providers) is refused with its name, never ignored.
Invariant: a written file is 0600, whole at every moment, and keeps what others put there.
"""

import base64
import binascii
import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}
# Fields that name files, by section.
_PATHS = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
    "contexts": (),
}


# Fields of a Connection that are plain text, and what the file calls them.
_CLUSTER_TEXTS = {"tls_server_name": "tls-server-name", "proxy_url": "proxy-url"}
_USER_TEXTS = {
    "token": "token", "token_file": "tokenFile", "username": "username", "password": "password",
    "impersonate": "as", "impersonate_uid": "as-uid",
}  # fmt: skip


class KubeconfigError(Exception):
    """The configuration cannot be used; the message says which file or entry, and why."""


@dataclass(frozen=True, slots=True)
class Connection:
    """All that is needed to call one API server as one user."""

    server: str
    namespace: str = "default"
    ca: bytes | None = None  # PEM; None: the machine's own authorities
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    certificate: bytes | None = None  # PEM
    key: bytes | None = None  # PEM
    token: str = ""
    token_file: str = ""  # read again from time to time: it is rotated
    username: str = ""
    password: str = ""
    impersonate: str = ""
    impersonate_uid: str = ""
    impersonate_groups: tuple[str, ...] = ()
    impersonate_extra: tuple[tuple[str, str], ...] = ()
    proxy_url: str = ""

    @property
    def pair(self) -> tuple[bytes, bytes] | None:
        """The client certificate and its key, where there are any."""
        if self.certificate is None or self.key is None:
            return None
        return self.certificate, self.key


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    clusters: Mapping[str, Obj]
    users: Mapping[str, Obj]
    contexts: Mapping[str, Obj]
    current_context: str
    files: tuple[str, ...]  # those that were read
    environment: Mapping[str, str] = MappingProxyType({})  # for credential plugins

    def connection(
        self, *, context: str = "", cluster: str = "", user: str = "", namespace: str = ""
    ) -> Connection:
        """The named context (else the current one), with parts of it replaced where given. A
        credential plugin is run here, once."""
        chosen = self._context(context or self.current_context)
        server = self._entry("cluster", self.clusters, cluster or chosen.get("cluster", ""))
        user_name = user or chosen.get("user", "")
        identity = self._entry("user", self.users, user_name) if user_name else {}
        where = namespace or chosen.get("namespace") or "default"
        return connection_of(server, self._identified(identity, server), where)

    def _identified(self, user: Obj, cluster: Obj) -> Obj:
        """With what the user's credential plugin says, if there is one."""
        if not user.get("exec"):
            return user
        from sampan.client import exec_plugin

        try:
            return {**user, **exec_plugin.credentials(user["exec"], cluster, self.environment)}
        except exec_plugin.PluginError as error:
            raise KubeconfigError(f"getting credentials: {error}") from error

    def _context(self, name: str) -> Obj:
        if name:
            return self._entry("context", self.contexts, name)
        if len(self.contexts) == 1:
            return next(iter(self.contexts.values()))
        if not self.files:
            raise KubeconfigError(
                "no kubeconfig was found: give --kubeconfig, set $KUBECONFIG, "
                "or write ~/.kube/config"
            )
        raise KubeconfigError(f"no current-context is set in {', '.join(self.files)}")

    def _entry(self, what: str, entries: Mapping[str, Obj], name: str) -> Obj:
        if name not in entries:
            raise KubeconfigError(f'{what} "{name}" does not exist')
        return entries[name]


def default_path(environment: Mapping[str, str], home: str) -> Path:
    """Where kubectl writes: the first file of $KUBECONFIG, else ~/.kube/config."""
    listed = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(listed[0]).absolute() if listed else Path(home) / ".kube" / "config"


def load(explicit_path: str, environment: Mapping[str, str], home: str) -> Kubeconfig:
    """From `explicit_path`, else every file in $KUBECONFIG merged, else ~/.kube/config."""
    if explicit_path:
        return _merge([_read(Path(explicit_path), must_exist=True)], environment)
    listed = environment.get("KUBECONFIG", "")
    paths = [Path(part) for part in listed.split(os.pathsep) if part]
    if not paths:
        paths = [Path(home) / ".kube" / "config"]
    return _merge([_read(path, must_exist=False) for path in paths], environment)


def write_kubeconfig(
    path: str | Path, connection: Connection, name: str = "sampan", *, use: bool = True
) -> None:
    """Put cluster, user and context `name` into the file; all else stays. `use` makes it the
    current one, as it becomes where there is none."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone_in(path.parent):
        _write_context(path, connection, name, use=use)


def _write_context(path: Path, connection: Connection, name: str, *, use: bool) -> None:
    document = _document(path) if path.exists() else {}
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
    _write_whole(path, yaml.safe_dump(written, sort_keys=False).encode())


def current_context(path: Path) -> str:
    """Of this one file; empty where there is none."""
    return str((_document(path) if path.exists() else {}).get("current-context") or "")


def authority_of(path: Path, context: str) -> bytes | None:
    """The authority that the context's cluster names: which cluster it is. None: no such context.
    One that names none, or none that can be read, is of somebody else all the same."""
    if not path.exists():
        return None
    config = _merge([(path, _document(path))], {})
    if context not in config.contexts:
        return None
    cluster = config.clusters.get(str(config.contexts[context].get("cluster") or "")) or {}
    try:
        return _bytes(cluster, "certificate-authority") or b""
    except KubeconfigError:
        return b""


def remove_context(path: Path, name: str, before: str = "") -> bool:
    """Take out what `write_kubeconfig` put there under this name; all else stays. Where it was the
    current one, `before` is again, if that is still there."""
    if not path.exists():
        return False
    with _alone_in(path.parent):
        return _remove_context(path, name, before)


def _remove_context(path: Path, name: str, before: str) -> bool:
    document = _document(path)
    names = {"contexts": name, "clusters": name, "users": f"{name}-admin"}
    if name not in [entry.get("name") for entry in document.get("contexts") or []]:
        return False
    for section, own in names.items():
        entries = document.get(section) or []
        document[section] = [entry for entry in entries if entry.get("name") != own]
    if document.get("current-context") == name:
        left = [entry.get("name") for entry in document["contexts"]]
        document["current-context"] = before if before in left else ""
    _write_whole(path, yaml.safe_dump(document, sort_keys=False).encode())
    return True


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Two clusters that start at once both change the file: one after the other, by a lock on its
    directory, which leaves nothing behind."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(path: Path, *, must_exist: bool) -> tuple[Path, Obj] | None:
    if not path.exists():
        if must_exist:
            raise KubeconfigError(f"{path}: no such file")
        return None
    return path, _document(path)


def _document(path: Path) -> Obj:
    try:
        document: Any = yaml.load(path.read_bytes(), _LOADER)
    except OSError as error:
        raise KubeconfigError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f"line {mark.line + 1}: {problem}" if mark is not None else str(error)
        raise KubeconfigError(f"{path}: it is no YAML: {where}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig: the top is not a mapping")
    kind = document.get("kind", "Config")
    if kind != "Config":
        raise KubeconfigError(f"{path}: not a kubeconfig: kind is {kind}")
    return document


def _merge(read: list[tuple[Path, Obj] | None], environment: Mapping[str, str]) -> Kubeconfig:
    found = [item for item in read if item is not None]
    sections: dict[str, dict[str, Obj]] = {section: {} for section in _SECTIONS}
    current = ""
    for path, document in found:
        current = current or document.get("current-context") or ""
        for section, inner in _SECTIONS.items():
            for entry in _entries(path, document, section):
                value = _with_absolute_paths(entry.get(inner) or {}, _PATHS[section], path)
                sections[section].setdefault(entry["name"], value)
    files = tuple(str(path) for path, _ in found)
    return Kubeconfig(
        sections["clusters"], sections["users"], sections["contexts"], current, files, environment
    )


def _entries(path: Path, document: Obj, section: str) -> list[Obj]:
    entries = document.get(section) or []
    if not isinstance(entries, list):
        raise KubeconfigError(f"{path}: {section} is not a list")
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise KubeconfigError(f"{path}: an entry of {section} has no name")
    return entries


def _with_absolute_paths(entry: Obj, fields: tuple[str, ...], path: Path) -> Obj:
    resolved = dict(entry)
    for field in fields:
        if resolved.get(field):
            resolved[field] = str(path.parent.absolute() / resolved[field])
    return resolved


def connection_of(cluster: Obj, user: Obj, namespace: str) -> Connection:
    """What one cluster entry and one user entry say together."""
    if not cluster.get("server"):
        raise KubeconfigError("the cluster has no server")
    if user.get("auth-provider"):
        raise KubeconfigError("users with auth-provider are not supported: use an exec plugin")
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    ca = _bytes(cluster, "certificate-authority")
    if insecure and ca is not None:
        raise KubeconfigError(
            "specifying a root certificates file with the insecure flag is not allowed"
        )
    certificate, key = _bytes(user, "client-certificate"), _bytes(user, "client-key")
    if (certificate is None) != (key is None):
        raise KubeconfigError("client-certificate and client-key must be given together")
    texts = {field: cluster.get(name) or "" for field, name in _CLUSTER_TEXTS.items()}
    texts |= {field: user.get(name) or "" for field, name in _USER_TEXTS.items()}
    if texts["token"]:
        texts["token_file"] = ""
    return Connection(
        server=cluster["server"].rstrip("/"),
        namespace=namespace,
        ca=ca,
        insecure_skip_tls_verify=insecure,
        certificate=certificate,
        key=key,
        impersonate_groups=tuple(user.get("as-groups") or ()),
        impersonate_extra=tuple(
            (key, value)
            for key, values in (user.get("as-user-extra") or {}).items()
            for value in values
        ),
        **texts,
    )


def _bytes(entry: Obj, field: str) -> bytes | None:
    """`field-data` in base64, else the file that `field` names."""
    data = entry.get(f"{field}-data")
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError, TypeError) as error:
            raise KubeconfigError(f"{field}-data: not base64: {error}") from error
    path = entry.get(field)
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise KubeconfigError(f"unable to read {field} {path}: {error.strerror}") from error


def _with_entry(document: Obj, section: str, name: str, value: Obj) -> list[Obj]:
    others = [entry for entry in document.get(section) or [] if entry.get("name") != name]
    return [*others, {"name": name, _SECTIONS[section]: value}]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _write_whole(path: Path, data: bytes) -> None:
    """Under another name first: a reader sees the old file or the new one, never half of it."""
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
