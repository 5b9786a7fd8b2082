"""Discovery documents in protobuf, for clients that take nothing else.

Job: the JSON form of a discovery document in, its message out. Field numbers are facts of the wire.
    Pure.
"""

from typing import Any

from sampan.api.objects import Obj
from sampan.api.protobuf.writer import in_envelope
from sampan.core.protobuf_wire import bytes_field, varint_field

_STRING, _BOOL, _STRINGS, _VERBS = "string", "bool", "strings", "verbs"
# Of each message its fields: number, name, and what it is; `[Message]` is a list of them.
_MESSAGES: dict[str, tuple[tuple[int, str, str], ...]] = {
    "APIVersions": (
        (1, "versions", _STRINGS),
        (2, "serverAddressByClientCIDRs", "[ServerAddressByClientCIDR]"),
    ),
    "ServerAddressByClientCIDR": ((1, "clientCIDR", _STRING), (2, "serverAddress", _STRING)),
    "APIGroupList": ((1, "groups", "[APIGroup]"),),
    "APIGroup": (
        (1, "name", _STRING),
        (2, "versions", "[GroupVersionForDiscovery]"),
        (3, "preferredVersion", "GroupVersionForDiscovery"),
        (4, "serverAddressByClientCIDRs", "[ServerAddressByClientCIDR]"),
    ),
    "GroupVersionForDiscovery": ((1, "groupVersion", _STRING), (2, "version", _STRING)),
    "APIResourceList": ((1, "groupVersion", _STRING), (2, "resources", "[APIResource]")),
    "APIResource": (
        (1, "name", _STRING),
        (2, "namespaced", _BOOL),
        (3, "kind", _STRING),
        (4, "verbs", _VERBS),
        (5, "shortNames", _STRINGS),
        (6, "singularName", _STRING),
        (7, "categories", _STRINGS),
        (8, "group", _STRING),
        (9, "version", _STRING),
        (10, "storageVersionHash", _STRING),
    ),
    "APIGroupDiscoveryList": ((1, "metadata", "Empty"), (2, "items", "[APIGroupDiscovery]")),
    "APIGroupDiscovery": ((1, "metadata", "Named"), (2, "versions", "[APIVersionDiscovery]")),
    "Empty": (),
    "Named": ((1, "name", _STRING),),
    "APIVersionDiscovery": (
        (1, "version", _STRING),
        (2, "resources", "[APIResourceDiscovery]"),
        (3, "freshness", _STRING),
    ),
    "APIResourceDiscovery": (
        (1, "resource", _STRING),
        (2, "responseKind", "GroupVersionKind"),
        (3, "scope", _STRING),
        (4, "singularResource", _STRING),
        (5, "verbs", _STRINGS),
        (6, "shortNames", _STRINGS),
        (7, "categories", _STRINGS),
        (8, "subresources", "[APISubresourceDiscovery]"),
    ),
    "APISubresourceDiscovery": (
        (1, "subresource", _STRING),
        (2, "responseKind", "GroupVersionKind"),
        (3, "acceptedTypes", "[GroupVersionKind]"),
        (4, "verbs", _STRINGS),
    ),
    "GroupVersionKind": ((1, "group", _STRING), (2, "version", _STRING), (3, "kind", _STRING)),
}


def discovery_bytes(document: Obj) -> bytes:
    """In its envelope."""
    kind = str(document["kind"])
    version = str(document.get("apiVersion") or "v1")
    return in_envelope(version, kind, _message(kind, document))


def _message(name: str, obj: Obj) -> bytes:
    out = bytearray()
    for number, key, kind in _MESSAGES[name]:
        value = obj.get(key)
        if value is not None:
            out += _field(number, kind, value)
    return bytes(out)


def _field(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "string":
            return bytes_field(number, value.encode())
        case "bool":
            return varint_field(number, int(value))
        case "strings":
            return b"".join(bytes_field(number, item.encode()) for item in value)
        case "verbs":  # a message of its own, so that none differs from nothing
            items = b"".join(bytes_field(1, item.encode()) for item in value)
            return bytes_field(number, items)
    if kind.startswith("["):
        return b"".join(bytes_field(number, _message(kind[1:-1], item)) for item in value)
    return bytes_field(number, _message(kind, value))
