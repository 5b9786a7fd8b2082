"""The user's kuberc file: where it is, what it says, and how it is written.

Job: the path that flag, environment and home directory name; a file to a Preference and back.
Invariant: of a file's documents the first that is a Preference counts, in either version.
"""

import os
from collections.abc import Mapping
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.objects.documents import chunks
from sampan.client import plain_yaml
from sampan.client.kubeconfig_types import STRING, STRINGS, Struct, TypeMismatch, encoded, typed
from sampan.core.fast_dataclass import dataclass

GROUP = "kubectl.config.k8s.io"
_OPTION = Struct(
    "CommandOptionDefault", {"name": STRING, "default": STRING}, {"name": "", "default": ""}
)


def _preference(package: str, defaults: str, options: str, policies: Mapping[str, Any]) -> Struct:
    """Its versions have other names for the same."""
    command = Struct(
        "CommandDefaults", {"command": STRING, options: [_OPTION]},
        {"command": "", options: None}, package,
    )  # fmt: skip
    alias = Struct("AliasOverride", {
        "name": STRING, "command": STRING, "prependArgs": STRINGS, "appendArgs": STRINGS,
        options: [_OPTION],
    }, {"name": "", "command": ""}, package)  # fmt: skip
    fields = {"kind": STRING, "apiVersion": STRING, defaults: [command], "aliases": [alias]}
    return Struct("Preference", {**fields, **policies}, {defaults: None, "aliases": None}, package)


_ENTRY = Struct("AllowlistEntry", {"name": STRING}, {"name": ""}, "v1beta1")
PREFERENCE = _preference("v1beta1", "defaults", "options", {
    "credentialPluginPolicy": STRING, "credentialPluginAllowlist": [_ENTRY],
})  # fmt: skip
_VERSIONS = {
    f"{GROUP}/v1beta1": PREFERENCE,
    f"{GROUP}/v1alpha1": _preference("v1alpha1", "overrides", "flags", {}),
}
_NEWER = {"overrides": "defaults", "flags": "options"}
NEW: Obj = {"kind": "Preference", "apiVersion": f"{GROUP}/v1beta1"}


@dataclass(frozen=True, slots=True)
class Found:
    """What a file says in the words of v1beta1, and what else it says that nobody knows."""

    preference: Obj
    complaint: str = ""


def place(given: str, environment: Mapping[str, str], home: str) -> tuple[str, bool]:
    """The file, and whether somebody named it; empty where kuberc is off."""
    if environment.get("KUBERC") == "off":
        if given:
            raise CliError(
                "disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive"
            )
        return "", False
    usual = os.path.normpath(os.path.join(home, ".kube", "kuberc"))
    if given and given != usual:
        return given, True
    named = environment.get("KUBERC", "")
    return named or usual, bool(given or named)


def content(path: str) -> bytes:
    """Raises FileNotFoundError and other OSErrors, with Go's words in `strerror`."""
    with open(path, "rb") as file:
        return file.read()


def why_not(error: OSError, path: str) -> str:
    verb = "read" if isinstance(error, IsADirectoryError) else "open"
    return f"{verb} {path}: {(error.strerror or str(error)).lower()}"


def decoded(data: bytes, path: str) -> Found | None:
    """The first document that is a Preference; None where the file says nothing at all."""
    is_empty = True
    for chunk in chunks(data.decode(errors="replace"), path):
        if not chunk.replace("---", "").strip():
            continue
        is_empty = False
        try:
            value, repeated = _read(chunk)
        except ValueError:
            continue
        struct = _struct_of(value)
        if struct is None:
            continue
        try:
            preference = typed(value, struct)
        except TypeMismatch:
            continue
        unknown = [f'unknown field "{field}"' for field in _unknown(value, struct)]
        problems = [*repeated, *unknown]
        text = f"strict decoding error: {', '.join(problems)}" if problems else ""
        return Found(_in_newer_words(preference, struct), text)
    if is_empty:
        return None
    raise CliError(f"no valid preferences found in {path}, use --v=5 to see details")


def read_loosely(data: bytes) -> Obj | None:
    """As `kuberc view` and `set` read: the first document, whatever it says it is."""
    try:
        value, _ = _read(data.decode(errors="replace"))
    except ValueError as error:
        raise CliError(f"error parsing kuberc file: {error}") from error
    if value is None:
        return None
    try:
        known = typed(_with_texts(value, PREFERENCE), PREFERENCE)
    except TypeMismatch as error:
        why = f"error unmarshaling JSON: while decoding JSON: {error}"
        raise CliError(f"error parsing kuberc file: {why}") from error
    return _known_only(known, PREFERENCE)


def _read(text: str) -> tuple[Any, list[str]]:
    """The first document, and what it says twice. Raises ValueError."""
    try:
        return plain_yaml.read(text), []
    except plain_yaml.Unusual:
        from sampan.api import strict_yaml

        parsed = strict_yaml.parse_yaml(text)
        return parsed.value, parsed.duplicates


def _with_texts(value: Any, kind: Any) -> Any:
    """Numbers and truths as text where a text belongs: what knows its type beforehand reads so."""
    if isinstance(kind, list) and isinstance(value, list):
        return [_with_texts(item, kind[0]) for item in value]
    if kind == STRINGS and isinstance(value, list):
        return [_with_texts(item, STRING) for item in value]
    if isinstance(kind, Struct) and isinstance(value, dict):
        return {name: _with_texts(item, kind.fields.get(name)) for name, item in value.items()}
    if kind == STRING and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else f"{value}"
    return value


def as_written(preference: Obj) -> Obj:
    """Every field in its order, the empty ones that are always there included."""
    written: Obj = encoded(preference, PREFERENCE)
    return written


def _struct_of(value: Any) -> Struct | None:
    if not isinstance(value, dict) or value.get("kind") != "Preference":
        return None
    return _VERSIONS.get(str(value.get("apiVersion")))


def _unknown(value: Any, kind: Any, path: str = "") -> list[str]:
    """In the order in which a decoder of sorted JSON meets them."""
    if isinstance(kind, list) and isinstance(value, list):
        found = [_unknown(item, kind[0], f"{path}[{at}]") for at, item in enumerate(value)]
        return [name for names in found for name in names]
    if not isinstance(kind, Struct) or not isinstance(value, dict):
        return []
    names: list[str] = []
    for name in sorted(value):
        where = f"{path}.{name}" if path else name
        inner = kind.fields.get(name)
        names += [where] if inner is None else _unknown(value[name], inner, where)
    return names


def _in_newer_words(value: Any, kind: Any) -> Any:
    """v1alpha1 in the words of v1beta1, without what is unknown."""
    if isinstance(kind, list):
        return [_in_newer_words(item, kind[0]) for item in value]
    if not isinstance(kind, Struct):
        return value
    return {
        _NEWER.get(name, name): _in_newer_words(value[name], inner)
        for name, inner in kind.fields.items()
        if name in value
    }


def _known_only(value: Obj, kind: Struct) -> Obj:
    known: Obj = _in_newer_words(value, kind)
    return known
