"""kubeconfig files as `config` changes them.

Job: all files of the loading order, merged; and the way back: each change into the one file that
    holds what it is about, in kubectl's order and form.
Invariant: what one file says never gets into another one.
Invariant: what we do not know in a file stays in it.
"""

import base64
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from sampan.api.objects import Obj, copy_of
from sampan.cli.errors import CliError
from sampan.cli.session import Session
from sampan.client import kubeconfig, kubeconfig_types
from sampan.client.kubeconfig_types import CONFIG, SECTIONS

_RELATIVE = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
    "contexts": (),
}  # fields that name files
_SECRETS = ("token", "password")


class Config:
    """What one file, or several together, say."""

    def __init__(self, document: Obj | None = None, origin: str = "") -> None:
        document = document or {}
        self.current: str = document.get("current-context") or ""
        self.preferences: Obj = document.get("preferences") or {}
        self.entries: dict[str, dict[str, Obj]] = {}
        self.origins: dict[tuple[str, str], str] = {}  # the file that holds an entry
        for section, inner in SECTIONS.items():
            named = {
                str(entry.get("name") or ""): entry.get(inner) or {}
                for entry in document.get(section) or []
            }
            self.entries[section] = named
            self.origins |= {(section, name): origin for name in named}
        known = (*SECTIONS, "current-context", "preferences", "kind", "apiVersion")
        self.rest: Obj = {key: item for key, item in document.items() if key not in known}

    def add(self, other: "Config") -> None:
        """A file that counts less: what is there already stays."""
        self.current = self.current or other.current
        self.preferences = {**other.preferences, **self.preferences}
        self.rest = {**other.rest, **self.rest}
        for section, entries in self.entries.items():
            for name, entry in other.entries[section].items():
                if name not in entries:
                    entries[name] = entry
                    self.origins[section, name] = other.origins[section, name]

    def document(self) -> Obj:
        """In the order of kubectl's struct."""
        whole: Obj = {"kind": "Config", "apiVersion": "v1", **self.rest}
        whole |= {"preferences": self.preferences, "current-context": self.current}
        for section, inner in SECTIONS.items():
            entries = self.entries[section]
            whole[section] = [
                {"name": name, inner: entries[name]} for name in sorted(entries)
            ] or None
        written: Obj = kubeconfig_types.encoded(whole, CONFIG)
        return written

    def copy(self) -> "Config":
        other = Config()
        other.current, other.preferences = self.current, copy_of(self.preferences)
        other.entries, other.rest = copy_of(self.entries), self.rest
        other.origins = dict(self.origins)
        return other


class ConfigAccess:
    """Where kubeconfigs are read from, and where changes go."""

    def __init__(self, session: Session) -> None:
        self.explicit = str(session.shared("kubeconfig"))
        environment = session.io.environment
        self.paths = kubeconfig.precedence(self.explicit, environment, session.io.home)

    @property
    def default_path(self) -> str:
        """Of what no file has yet: the first that is there, else the last."""
        return next((path for path in self.paths if os.path.exists(path)), self.paths[-1])

    def starting(self) -> Config:
        """All files merged. Of an explicit one that is not there nothing is known."""
        whole = Config()
        for path, document in _loaded(self.paths):
            whole.add(Config(document, path))
        return whole

    def modify(self, new: Config, *, relative_paths: bool = True) -> None:
        """Writes what is different in `new`, each entry into its own file."""
        with _locked(self.paths):
            old = self.starting()
            if new.current != old.current:
                self._write_current(new.current)
            if new.preferences != old.preferences:
                self._write_preferences(new.preferences)
            for section in SECTIONS:
                self._write_section(section, old, new, relative_paths)

    def _write_section(self, section: str, old: Config, new: Config, relative: bool) -> None:
        before, after = old.entries[section], new.entries[section]
        for name, entry in after.items():
            if name in before and _same(before[name], entry, section):
                continue
            path = new.origins.get((section, name)) or self.default_path
            own = of_file(path)
            own.entries[section][name] = _relative(entry, section, path) if relative else entry
            _write(own, path)
        for name in before:
            if name not in after:
                path = old.origins[section, name]
                own = of_file(path)
                own.entries[section].pop(name, None)
                _write(own, path)

    def _write_current(self, name: str) -> None:
        if name or self.explicit:
            path = self.default_path
        else:  # it is forgotten where it was said
            path = next(path for path in self.paths if of_file(path).current)
        own = of_file(path)
        own.current = name
        _write(own, path)

    def _write_preferences(self, preferences: Obj) -> None:
        for path in self.paths:
            own = of_file(path)
            if own.preferences != preferences:
                own.preferences = preferences
                _write(own, path)
                return


def _same(left: Obj, right: Obj, section: str) -> bool:
    struct = kubeconfig_types.ENTRIES[section]
    return bool(kubeconfig_types.encoded(left, struct) == kubeconfig_types.encoded(right, struct))


def of_file(path: str) -> Config:
    """Of one file alone; empty where there is none."""
    return Config(dict(_loaded([path])).get(path), path)


def _loaded(paths: list[str]) -> list[tuple[str, Obj]]:
    try:
        return kubeconfig.documents_of(paths)
    except kubeconfig.KubeconfigError as error:
        raise CliError(str(error)) from error


def _write(config: Config, path: str) -> None:
    from sampan.cli.printers.yaml_text import to_yaml
    from sampan.client.kubeconfig_file import write_whole

    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    write_whole(Path(path), to_yaml(config.document()).encode())


@contextlib.contextmanager
def _locked(paths: list[str]) -> Iterator[None]:
    """As client-go: whoever else changes one of the files holds a file beside it."""
    held: list[str] = []
    try:
        for path in sorted(paths):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            lock = f"{path}.lock"
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0))
            except OSError as error:
                why = (error.strerror or str(error)).lower()
                raise CliError(f"open {lock}: {why}") from error
            held.append(lock)
        yield
    finally:
        for lock in held:
            with contextlib.suppress(OSError):
                os.unlink(lock)


def _relative(entry: Obj, section: str, path: str) -> Obj:
    """Files at or below the kubeconfig's folder are named from there, others by their whole path."""
    base = os.path.dirname(os.path.abspath(path))
    out = dict(entry)
    for field in _RELATIVE[section]:
        if out.get(field):
            out[field] = _relative_path(out[field], base)
    command = (out.get("exec") or {}).get("command") or ""
    if os.sep in command:
        out["exec"] = {**out["exec"], "command": _relative_path(command, base)}
    return out


def _relative_path(path: str, base: str) -> str:
    whole = os.path.normpath(os.path.join(base, path))
    near = os.path.relpath(whole, base)
    return whole if near.startswith("../") else near


def flatten(config: Config) -> None:
    """What files hold becomes part of it."""
    for section, fields in _RELATIVE.items():
        for name, entry in config.entries[section].items():
            base = os.path.dirname(os.path.abspath(config.origins.get((section, name), "")))
            for field in fields:
                if field != "tokenFile" and entry.get(field):
                    _embed(entry, field, os.path.join(base, entry[field]))


def _embed(entry: Obj, field: str, path: str) -> None:
    if entry.get(f"{field}-data"):
        raise CliError("cannot have values for both path and contents")
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CliError(f"open {path}: {(error.strerror or str(error)).lower()}") from error
    del entry[field]
    if content:
        entry[f"{field}-data"] = base64.b64encode(content).decode()


def redact(document: Obj) -> Obj:
    """Secrets out of what is shown."""
    whole = {**document}
    for section, inner in SECTIONS.items():
        whole[section] = [
            {**entry, inner: _hide(entry[inner])} for entry in document[section] or []
        ] or None
    return whole


def _hide(entry: Obj) -> Obj:
    out: Obj = dict(entry)
    for key in out:
        if key.endswith("-data"):
            out[key] = "DATA+OMITTED"
        elif key in _SECRETS:
            out[key] = "REDACTED"
    return out
