"""kubeconfig files as `config` changes them.

Job: read one or several, merged; write one back whole, in kubectl's order and form.
Invariant: what we do not know in a file stays in it.
"""

import os
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.printers.yaml_text import to_yaml
from sampan.cli.session import Session

SECTIONS = {"clusters": "cluster", "contexts": "context", "users": "user"}


class ConfigFile:
    """The entries by name, and the file that changes go to."""

    def __init__(self, session: Session) -> None:
        given = str(session.shared("kubeconfig"))
        listed = [
            part for part in session.io.environment.get("KUBECONFIG", "").split(os.pathsep) if part
        ]
        paths = [given] if given else listed or [str(Path(session.io.home) / ".kube" / "config")]
        self.path = next((item for item in paths if os.path.exists(item)), paths[-1])
        self.entries: dict[str, dict[str, Obj]] = {section: {} for section in SECTIONS}
        self.current = ""
        self._rest: Obj = {}
        for path in paths:
            self._read(path)

    def _read(self, path: str) -> None:
        if not os.path.exists(path):
            return
        from sampan.cli.objects.documents import documents

        try:
            found = documents(Path(path).read_bytes(), path)
        except OSError as error:
            raise CliError(f'error loading config file "{path}": {error.strerror}') from error
        except CliError as error:
            why = str(error).partition(": ")[2]
            raise CliError(f'error loading config file "{path}": {why}') from error
        document = found[0] if found else {}
        if not isinstance(document, dict):
            raise CliError(f'error loading config file "{path}": it is not a kubeconfig')
        self.current = self.current or document.get("current-context") or ""
        for section, inner in SECTIONS.items():
            for entry in document.get(section) or []:
                self.entries[section].setdefault(entry["name"], dict(entry.get(inner) or {}))
        known = (*SECTIONS, "current-context", "apiVersion", "kind", "preferences")
        self._rest |= {key: value for key, value in document.items() if key not in known}

    def document(self) -> Obj:
        """In the order of kubectl's struct."""
        whole: Obj = {"kind": "Config", "apiVersion": "v1", **self._rest}
        for section in ("clusters", "users", "contexts"):
            entries = self.entries[section]
            whole[section] = [
                {"name": name, SECTIONS[section]: _order(entries[name])} for name in sorted(entries)
            ] or None
        whole["current-context"] = self.current
        return whole

    def save(self) -> None:
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(to_yaml(self.document()))
        beside.replace(path)


_ORDER = (
    "server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority",
    "certificate-authority-data", "proxy-url", "cluster", "user", "namespace",
    "client-certificate", "client-certificate-data", "client-key", "client-key-data", "token",
    "tokenFile", "as", "username", "password", "exec",
)  # fmt: skip


def _order(entry: Obj) -> Obj:
    def rank(key: str) -> int:
        return _ORDER.index(key) if key in _ORDER else len(_ORDER)

    return {key: entry[key] for key in sorted(entry, key=rank)}


def redact(document: Obj) -> Obj:
    """Secrets out of what is shown."""
    whole = {**document}
    whole["clusters"] = [
        {**entry, "cluster": _hide(entry["cluster"])} for entry in document["clusters"] or []
    ] or None
    whole["users"] = [
        {**entry, "user": _hide(entry["user"])} for entry in document["users"] or []
    ] or None
    return whole


def _hide(entry: Obj) -> Obj:
    out: dict[str, Any] = dict(entry)
    for key in out:
        if key.endswith("-data"):
            out[key] = "DATA+OMITTED"
        elif key in ("token", "password"):
            out[key] = "REDACTED"
    return out
