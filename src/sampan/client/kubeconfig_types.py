"""What a kubeconfig can say: its structs, their fields, and the types of these.

Job: a document of YAML or JSON to typed data, in the words in which client-go refuses others;
    typed data to the document that client-go writes.
Invariant: what was read, is written as it was read, also fields that nobody knows.
"""

from typing import Any

from sampan.api import go_base64
from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

_SCHEME = 'scheme "k8s.io/client-go/tools/clientcmd/api/latest/latest.go:50"'
_VERSION_AND_KIND = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)
# Types that are no structs, as Go prints them.
STRING, BOOL, BYTES, STRINGS = "string", "bool", "[]uint8", "[]string"
TEXTS, LISTS_OF_TEXTS, RAW = "map[string]string", "map[string][]string", "runtime.RawExtension"


class TypeMismatch(Exception):
    """A field of another type; the message is that of Go's JSON."""


@dataclass(frozen=True, slots=True)
class Struct:
    """Its fields in the order in which they are written; some are written though empty."""

    name: str
    fields: dict[str, Any]  # a name of above, a Struct, or [Struct]
    always: dict[str, Any]  # with the value that stands for an empty one
    package: str = "v1"


_EXTENSION = Struct(
    "NamedExtension", {"name": STRING, "extension": RAW}, {"name": "", "extension": None}
)
CLUSTER = Struct("Cluster", {
    "server": STRING, "tls-server-name": STRING, "insecure-skip-tls-verify": BOOL,
    "certificate-authority": STRING, "certificate-authority-data": BYTES, "proxy-url": STRING,
    "disable-compression": BOOL, "extensions": [_EXTENSION],
}, {"server": ""})  # fmt: skip
_PROVIDER = Struct(
    "AuthProviderConfig", {"name": STRING, "config": TEXTS}, {"name": "", "config": None}
)
_VARIABLE = Struct("ExecEnvVar", {"name": STRING, "value": STRING}, {"name": "", "value": ""})
EXEC = Struct("ExecConfig", {
    "command": STRING, "args": STRINGS, "env": [_VARIABLE], "apiVersion": STRING,
    "installHint": STRING, "provideClusterInfo": BOOL, "interactiveMode": STRING,
}, {"command": "", "args": None, "env": None, "provideClusterInfo": False})  # fmt: skip
USER = Struct("AuthInfo", {
    "client-certificate": STRING, "client-certificate-data": BYTES, "client-key": STRING,
    "client-key-data": BYTES, "token": STRING, "tokenFile": STRING, "as": STRING, "as-uid": STRING,
    "as-groups": STRINGS, "as-user-extra": LISTS_OF_TEXTS, "username": STRING, "password": STRING,
    "auth-provider": _PROVIDER, "exec": EXEC, "extensions": [_EXTENSION],
}, {})  # fmt: skip
CONTEXT = Struct("Context", {
    "cluster": STRING, "user": STRING, "namespace": STRING, "extensions": [_EXTENSION],
}, {"cluster": "", "user": ""})  # fmt: skip
PREFERENCES = Struct("Preferences", {"colors": BOOL, "extensions": [_EXTENSION]}, {})
SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}
ENTRIES = {"clusters": CLUSTER, "users": USER, "contexts": CONTEXT}
_NAMED = {
    section: Struct(f"Named{ENTRIES[section].name}", {"name": STRING, inner: ENTRIES[section]},
                    {"name": "", inner: {}})
    for section, inner in SECTIONS.items()
}  # fmt: skip
CONFIG = Struct("Config", {
    "kind": STRING, "apiVersion": STRING, "preferences": PREFERENCES,
    **{section: [_NAMED[section]] for section in SECTIONS}, "current-context": STRING,
    "extensions": [_EXTENSION],
}, {**dict.fromkeys(SECTIONS), "current-context": ""})  # fmt: skip
_V1BETA1 = ("client.authentication.k8s.io/v1beta1", "client.authentication.k8s.io/v1alpha1")


def decoded(document: Any) -> Obj:
    """The document with its types checked, empty fields left out. Raises TypeMismatch."""
    if document is None:
        return {}
    if not isinstance(document, dict):
        why = f"json: cannot unmarshal {_word(document)} into Go value of type {_VERSION_AND_KIND}"
        raise TypeMismatch(f"couldn't get version/kind; json parse error: {why}")
    version, kind = document.get("apiVersion") or "v1", document.get("kind") or "Config"
    if (version, kind) != ("v1", "Config"):
        text = f'no kind "{kind}" is registered for version "{version}" in {_SCHEME}'
        raise TypeMismatch(text)
    found = typed(document, CONFIG)
    for section in SECTIONS:
        _refuse_repeated(found.get(section) or [], section)
    for entry in found.get("users") or []:
        plugin = (entry.get("user") or {}).get("exec")
        if plugin and not plugin.get("interactiveMode") and plugin.get("apiVersion") in _V1BETA1:
            plugin["interactiveMode"] = "IfAvailable"
    return found


def typed(document: Any, struct: Struct) -> Obj:
    """With the types of known fields checked; nulls are left out. Raises TypeMismatch."""
    if not isinstance(document, dict):
        wanted = f"{struct.package}.{struct.name}"
        why = f"json: cannot unmarshal {_word(document)} into Go value of type {wanted}"
        raise TypeMismatch(why)
    return _struct(document, struct, "")


def encoded(value: Any, kind: Any) -> Any:
    """As client-go writes it: fields in order, empty ones left out but where it always has them."""
    if isinstance(kind, list):
        return [encoded(item, kind[0]) for item in value]
    if not isinstance(kind, Struct):
        return value
    out: Obj = {}
    for name, inner in kind.fields.items():
        given = value.get(name)
        if not is_empty(given, inner):
            out[name] = encoded(given, inner)
        elif name in kind.always:
            empty = kind.always[name] if given is None else given
            out[name] = encoded(empty, inner) if isinstance(inner, Struct) else empty
    return out | {name: item for name, item in value.items() if name not in kind.fields}


def is_empty(value: Any, kind: Any) -> bool:
    """What `omitempty` leaves out: pointers (exec, auth-provider) only where they are nil."""
    if isinstance(kind, Struct) and kind not in (EXEC, _PROVIDER):
        return not value
    return value is None if isinstance(kind, Struct) or kind == RAW else not value


def _refuse_repeated(entries: list[Obj], section: str) -> None:
    seen: set[str] = set()
    for entry in entries:
        name = str(entry.get("name") or "")
        if name in seen:
            struct = ENTRIES[section].name
            raise TypeMismatch(
                f"error converting *[]Named{struct} into *map[string]*api.{struct}: "
                f'duplicate name "{name}" in list'
            )
        seen.add(name)


def _typed(value: Any, kind: Any, holder: Struct, path: str) -> Any:
    if isinstance(kind, Struct):
        if not isinstance(value, dict):
            raise _mismatch(value, f"{kind.package}.{kind.name}", holder, path)
        return _struct(value, kind, path)
    if isinstance(kind, list):
        [inner] = kind
        if not isinstance(value, list):
            raise _mismatch(value, f"[]{inner.package}.{inner.name}", holder, path)
        return [_typed({} if item is None else item, inner, holder, path) for item in value]
    return _plain(value, kind, holder, path)


def _plain(value: Any, kind: str, holder: Struct, path: str) -> Any:
    match kind:
        case "string" | "bool":
            wanted = str if kind == STRING else bool
            if not isinstance(value, wanted):
                raise _mismatch(value, kind, holder, path)
        case "[]uint8":
            if not isinstance(value, str):
                raise _mismatch(value, kind, holder, path)
            try:
                go_base64.decoded(value)
            except ValueError as error:
                raise TypeMismatch(str(error)) from error
        case "[]string":
            if not isinstance(value, list):
                raise _mismatch(value, kind, holder, path)
            return ["" if item is None else _plain(item, STRING, holder, path) for item in value]
        case "map[string]string" | "map[string][]string":
            if not isinstance(value, dict):
                raise _mismatch(value, kind, holder, path)
            inner = kind.removeprefix("map[string]")
            return {key: _plain(item, inner, holder, path) for key, item in value.items()}
    return value


def _struct(value: Obj, struct: Struct, path: str) -> Obj:
    out: Obj = {}
    for name, item in value.items():
        kind = struct.fields.get(name)
        where = f"{path}.{name}" if path else name
        if kind is None:
            out[name] = item
        elif item is not None:
            out[name] = _typed(item, kind, struct, where)
    return out


def _mismatch(value: Any, wanted: str, holder: Struct, path: str) -> TypeMismatch:
    return TypeMismatch(
        f"json: cannot unmarshal {_word(value)} into Go struct field {holder.name}.{path} "
        f"of type {wanted}"
    )


def _word(value: Any) -> str:
    from sampan.api.decode_scalars import json_word

    return json_word(value)
