"""Objects in protobuf, as typed Go clients send them: bytes in, the JSON form out.

Job: read `k8s\\0` + runtime.Unknown and the message inside, led by the schema and a table of field
    numbers. Only reading: answers are JSON, which these clients take as well. Pure.
Invariant: what comes out is what the same client would have sent as JSON.
Invariant: a field whose number is not known is reported, never dropped in silence.
"""

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from sampan.api import protobuf_core_fields, protobuf_group_fields
from sampan.api.objects import Obj
from sampan.api.schema import Schema
from sampan.api.schema_types import Type

MAGIC = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Go writes zero values of plain fields and leaves nil pointers out. In JSON the former are absent;
# these are pointers, where a zero was set on purpose.
_POINTERS = frozenset({
    "activeDeadlineSeconds", "allocateLoadBalancerNodePorts", "allowPrivilegeEscalation",
    "allowVolumeExpansion", "attachRequired", "automountServiceAccountToken", "averageUtilization",
    "backoffLimit", "backoffLimitPerIndex", "blockOwnerDeletion", "completions", "controller",
    "defaultMode", "deletionGracePeriodSeconds", "enableServiceLinks", "expirationSeconds",
    "failedJobsHistoryLimit", "fsGroup", "gracePeriodSeconds", "hostProcess", "hostUsers",
    "immutable", "leaseTransitions", "maxFailedIndexes", "minReplicas", "mode", "optional",
    "orphanDependents", "parallelism", "podInfoOnMount", "priority", "privileged",
    "progressDeadlineSeconds", "readOnlyRootFilesystem", "ready", "replicas", "requiresRepublish",
    "revisionHistoryLimit", "runAsGroup", "runAsNonRoot", "runAsUser", "serving",
    "setHostnameAsFQDN", "shareProcessNamespace", "stabilizationWindowSeconds",
    "startingDeadlineSeconds", "storageCapacity", "storageClassName", "successfulJobsHistoryLimit",
    "suspend", "terminating", "terminationGracePeriodSeconds", "tolerationSeconds",
    "ttlSecondsAfterFinished",
})  # fmt: skip
_ZEROS = ("", 0, False)
_MALFORMED = (struct.error, IndexError, UnicodeDecodeError, OverflowError, OSError)


class ProtobufError(ValueError):
    """The bytes are no object of a kind that we can read; the text says why."""


Read = Callable[[Any, str], Any]  # (wire value, path) → JSON value, or None for nothing


class ProtobufReader:
    """Compiles the fields of a message when it is first met."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._messages: dict[str, dict[int, str]] = {}
        self._packages: dict[str, str] = {}
        for table in (protobuf_core_fields.FIELDS, protobuf_group_fields.FIELDS):
            self._load(table)

    def object_in(self, body: bytes) -> tuple[Obj, list[str]]:
        """(object, unknown fields). Raises ProtobufError."""
        if not body.startswith(MAGIC):
            raise ProtobufError("the body does not begin with the mark of Kubernetes' protobuf")
        try:
            return self._unwrapped(body[len(MAGIC) :])
        except _MALFORMED as error:
            raise ProtobufError(f"the protobuf body is malformed: {error}") from error

    def _unwrapped(self, body: bytes) -> tuple[Obj, list[str]]:
        unknown = dict(_fields(body))
        type_meta = dict(_fields(_bytes(unknown.get(1, b""))))
        api_version, kind = (_bytes(type_meta.get(n, b"")).decode() for n in (1, 2))
        name = self._schema.name_of(api_version, kind)
        if kind == "DeleteOptions":
            name = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
        if name is None or name not in self._messages:
            raise ProtobufError(f"{api_version} {kind} cannot be read from protobuf: send JSON")
        problems: list[str] = []
        inner = self._message(name, name, _bytes(unknown.get(2, b"")), "", problems)
        return {"apiVersion": api_version, "kind": kind} | inner, problems

    def _message(self, name: str, holder: str, data: bytes, path: str, problems: list[str]) -> Obj:
        """`holder` is whose schema knows the fields: the message itself, or where it is inlined."""
        numbers, types = self._messages[name], self._schema.fields_of(holder)
        out: Obj = {}
        for number, value in _fields(data):
            key = numbers.get(number, "")
            if key.startswith("*"):
                inner = f"{self._packages[name]}{key[1:]}"
                out |= self._message(inner, holder, _bytes(value), path, problems)
                continue
            here = f"{path}.{key}" if path else key
            kind = types.get(key)
            if kind is None:
                if key not in ("apiVersion", "kind"):
                    problems.append(f'unknown field "{path or "object"}" number {number}')
                continue
            self._put(out, key, kind, value, here, problems)
        return out

    def _put(
        self, out: Obj, key: str, kind: Type, value: Any, path: str, problems: list[str]
    ) -> None:
        if kind.shape == "list":
            assert kind.element is not None, kind
            items = out.setdefault(key, [])
            items.extend(self._items(kind.element, value, f"{path}[{len(items)}]", problems))
        elif kind.shape == "map":
            assert kind.element is not None, kind
            entry = dict(_fields(_bytes(value)))
            name = _bytes(entry.get(1, b"")).decode()
            inner = self._map_value(kind.element, entry.get(2), f"{path}.{name}", problems)
            out.setdefault(key, {})[name] = inner
        else:
            read = self._value(kind, value, path, problems)
            if read is None or (read in _ZEROS and key not in _POINTERS):
                out.pop(key, None)
            else:
                out[key] = read

    def _items(self, kind: Type, value: Any, path: str, problems: list[str]) -> list[Any]:
        if kind.shape == "integer" and isinstance(value, bytes):
            return [_signed(number) for number in _packed(value)]
        return [self._value(kind, value, path, problems)]

    def _map_value(self, kind: Type, value: Any, path: str, problems: list[str]) -> Any:
        if kind.shape == "list":
            # A map of lists has a message of its own around each list, with one field.
            assert kind.element is not None, kind
            inner = [one for _, one in _fields(_bytes(value or b""))]
            return [self._value(kind.element, one, path, problems) for one in inner]
        if value is None:
            value = 0 if kind.shape in ("integer", "boolean") else b""
        return self._value(kind, value, path, problems)

    def _value(self, kind: Type, value: Any, path: str, problems: list[str]) -> Any:
        special = _SPECIAL.get(kind.format)
        if special is not None:
            return special(_bytes(value))
        match kind.shape:
            case "object":
                return self._message(kind.name, kind.name, _bytes(value), path, problems)
            case "string":
                return _bytes(value).decode()
            case "integer":
                return _signed(value)
            case "boolean":
                return bool(value)
            case "number":
                return struct.unpack("<d", _bytes(value))[0]
        return _raw(_bytes(value))

    def _load(self, table: str) -> None:
        package = message = ""
        number = 1
        for line in table.strip().splitlines():
            if line.startswith("["):
                part = line[1:-1]
                start = "io.k8s.apimachinery.pkg.apis." if part == "meta.v1" else "io.k8s.api."
                package = f"{start}{part}."
                continue
            name, found, tokens = line.partition(":")
            if found:
                message, number = package + name, 1
                self._messages[message] = {}
                self._packages[message] = package
            else:
                tokens = line  # the fields of the message go on
            for token in tokens.split():
                if token.isdigit():
                    number = int(token)
                else:
                    self._messages[message][number] = token
                    number += 1


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field: int for varints, bytes for the rest."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ProtobufError(f"the protobuf body is malformed: wire type {wire}")
        if at + size > end:
            raise ProtobufError("the protobuf body is malformed: it ends early")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ProtobufError("the protobuf body is malformed: a number is too long")


def _packed(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _signed(value: Any) -> int:
    if not isinstance(value, int):
        raise ProtobufError("the protobuf body is malformed: a number was expected")
    return value - (1 << 64) if value >= 1 << 63 else value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("the protobuf body is malformed: bytes were expected")
    return value


def _quantity(data: bytes) -> str:
    return _bytes(dict(_fields(data)).get(1, b"")).decode() or "0"


def _int_or_string(data: bytes) -> int | str:
    parts = dict(_fields(data))
    if parts.get(1, 0) == 1:
        return _bytes(parts.get(3, b"")).decode()
    return _signed(parts.get(2, 0))


def _moment(data: bytes) -> tuple[datetime, int] | None:
    parts = dict(_fields(data))
    if 1 not in parts:
        return None  # Go's zero time
    try:
        return datetime.fromtimestamp(_signed(parts[1]), UTC), _signed(parts.get(2, 0))
    except ValueError as error:
        raise ProtobufError(f"the protobuf body is malformed: {error}") from error


def _time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else moment[0].strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(data: bytes) -> str | None:
    moment = _moment(data)
    if moment is None:
        return None
    return f"{moment[0]:%Y-%m-%dT%H:%M:%S}.{moment[1] // 1000:06}Z"


def _raw(data: bytes) -> Any:
    """JSON inside of protobuf: RawExtension, FieldsV1."""
    inner = _bytes(dict(_fields(data)).get(1, b""))
    try:
        return orjson.loads(inner) if inner else None
    except ValueError as error:
        raise ProtobufError(f"the protobuf body is malformed: {error}") from error


_SPECIAL: dict[str, Callable[[bytes], Any]] = {
    "byte": lambda data: base64.b64encode(data).decode(),
    "date-time": _time,
    "int-or-string": _int_or_string,
    "micro-time": _micro_time,
    "quantity": _quantity,
}
