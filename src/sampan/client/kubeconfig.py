"""kubeconfig: cluster, user and context of a connection.

Job: find, merge and read kubeconfig files as kubectl does; turn one context into a Connection.
Invariant: of several files the first one that sets a thing wins; paths are relative to their file.
Invariant: a file is what client-go takes for one: what it refuses is refused, in its words.
Invariant: what we cannot do (auth providers) is refused with its name, never ignored.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sampan.api.objects import Obj
from sampan.client import kubeconfig_types, plain_yaml
from sampan.client.kubeconfig_types import SECTIONS
from sampan.core.fast_dataclass import dataclass

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


class NoCredentials(KubeconfigError):
    """The user's credential plugin cannot run, or says nothing usable."""


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
        return connection_of(server, self.identified(identity, server), where)

    def identified(self, user: Obj, cluster: Obj) -> Obj:
        """With what the user's credential plugin says, if there is one."""
        if not user.get("exec"):
            return user
        from sampan.client import exec_plugin

        try:
            return {**user, **exec_plugin.credentials(user["exec"], cluster, self.environment)}
        except exec_plugin.PluginError as error:
            raise NoCredentials(str(error)) from error

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


def load(explicit_path: str, environment: Mapping[str, str], home: str) -> Kubeconfig:
    """From `explicit_path`, else every file in $KUBECONFIG merged, else ~/.kube/config."""
    paths = precedence(explicit_path, environment, home)
    return _merge(documents_of(paths, must_exist=bool(explicit_path)), environment)


def precedence(explicit_path: str, environment: Mapping[str, str], home: str) -> list[str]:
    """The files that count, the first of them most."""
    if explicit_path:
        return [explicit_path]
    listed = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return list(dict.fromkeys(listed)) or [os.path.join(home, ".kube", "config")]


def documents_of(paths: list[str], *, must_exist: bool = False) -> list[tuple[str, Obj]]:
    """Of the files that are there, typed. Raises KubeconfigError, naming every bad one."""
    found, complaints = [], []
    for path in paths:
        try:
            found.append((path, document_of(path)))
        except FileNotFoundError as error:
            if must_exist:
                raise KubeconfigError(f"stat {path}: no such file or directory") from error
        except KubeconfigError as error:
            complaints.append(f'error loading config file "{path}": {error}')
    if complaints:
        text = ", ".join(complaints)
        raise KubeconfigError(text if len(complaints) == 1 else f"[{text}]")
    return found


def document_of(path: str) -> Obj:
    """Of one file. Raises KubeconfigError, and FileNotFoundError."""
    try:
        content = _content(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        verb = "read" if isinstance(error, IsADirectoryError) else "open"
        why = f"{verb} {path}: {(error.strerror or str(error)).lower()}"
        raise KubeconfigError(why) from error
    try:
        document = plain_yaml.read(content.decode())
    except (plain_yaml.Unusual, UnicodeDecodeError):
        document = _any_yaml(content)
    try:
        return kubeconfig_types.decoded(document)
    except kubeconfig_types.TypeMismatch as error:
        raise KubeconfigError(str(error)) from error


def _any_yaml(content: bytes) -> Any:
    from sampan.api import strict_yaml

    try:
        return strict_yaml.first_document(content)
    except ValueError as error:
        raise KubeconfigError(str(error)) from error


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _merge(found: list[tuple[str, Obj]], environment: Mapping[str, str]) -> Kubeconfig:
    sections: dict[str, dict[str, Obj]] = {section: {} for section in SECTIONS}
    current = ""
    for path, document in found:
        current = current or document.get("current-context") or ""
        for section, inner in SECTIONS.items():
            for entry in document.get(section) or []:
                value = _with_absolute_paths(entry.get(inner) or {}, _PATHS[section], path)
                sections[section].setdefault(str(entry.get("name") or ""), value)
    files = tuple(path for path, _ in found)
    return Kubeconfig(
        sections["clusters"], sections["users"], sections["contexts"], current, files, environment
    )


def _with_absolute_paths(entry: Obj, fields: tuple[str, ...], path: str) -> Obj:
    resolved = dict(entry)
    for field in fields:
        if resolved.get(field):
            folder = os.path.dirname(os.path.abspath(path))
            resolved[field] = os.path.join(folder, resolved[field])
    plugin = resolved.get("exec") or {}
    if "/" in str(plugin.get("command") or ""):  # else it is looked for on PATH
        command = os.path.join(os.path.dirname(os.path.abspath(path)), plugin["command"])
        resolved["exec"] = {**plugin, "command": command}
    return resolved


def connection_of(cluster: Obj, user: Obj, namespace: str) -> Connection:
    """What one cluster entry and one user entry say together."""
    if not cluster.get("server"):
        raise KubeconfigError("the cluster has no server")
    if user.get("auth-provider"):
        raise KubeconfigError("users with auth-provider are not supported: use an exec plugin")
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    ca = bytes_of(cluster, "certificate-authority")
    if insecure and ca is not None:
        raise KubeconfigError(
            "specifying a root certificates file with the insecure flag is not allowed"
        )
    certificate, key = bytes_of(user, "client-certificate"), bytes_of(user, "client-key")
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


def bytes_of(entry: Obj, field: str) -> bytes | None:
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
        return _content(path)
    except OSError as error:
        raise KubeconfigError(f"unable to read {field} {path}: {error.strerror}") from error
