"""Protobuf encoding: the JSON form in, bytes out.

Job: write `k8s\\0` + runtime.Unknown and the message inside, led by the schema and the table of
    field numbers. Pure.
Invariant: what was written is read back as the same object (codec.py), and by Go's clients too:
    what is absent there is the zero that they give it.
"""

import base64
import struct
from collections.abc import Callable
from dataclasses import field
from datetime import datetime
from typing import Any

import orjson

from sampan.api.objects import Obj
from sampan.api.protobuf.codec import MAGIC
from sampan.api.protobuf.values import FIXED64, LENGTH, VARINT
from sampan.api.schema.field_kinds import Type
from sampan.api.schema.message_table import Messages, inlined_message, load_messages
from sampan.api.schema.published import Schema
from sampan.core.fast_dataclass import dataclass
from sampan.core.protobuf_wire import bytes_field, varint

_LIST_META = Type("object", name="io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_META_GROUP = "meta.k8s.io/"  # of the forms that every kind has
_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"

Put = Callable[[Obj, bytearray], None]
Write = Callable[[Any], bytes]  # of a value, without tag and length


class NotWritable(ValueError):
    """A kind that has no form in protobuf: a custom resource, say."""


@dataclass(slots=True)
class ProtobufWriter:
    """Compiles the fields of a message when it is first met."""

    schema: Schema
    _messages: Messages = field(default_factory=dict)
    _puts: dict[tuple[str, str], list[Put]] = field(default_factory=dict)

    def object_bytes(self, obj: Obj) -> bytes:
        """An object or a list, in its envelope. Raises NotWritable."""
        api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
        self._messages = self._messages or load_messages()
        if api_version.startswith(_META_GROUP):
            return in_envelope(api_version, kind, self._partial(obj))
        name = self.schema.name_of(api_version, kind)
        if name is None:
            raise NotWritable(f'no kind "{kind}" is registered for version "{api_version}"')
        body = self._list(name, obj) if "items" in obj else self._message(name, obj)
        return in_envelope(api_version, kind, body)

    def event_frame(self, kind: str, obj: Obj) -> bytes:
        """One event of a watch: a length of four bytes, and a WatchEvent."""
        event = bytes_field(1, kind.encode()) + bytes_field(
            2, bytes_field(1, self.object_bytes(obj))
        )
        return struct.pack(">I", len(event)) + event

    def _partial(self, obj: Obj) -> bytes:
        """PartialObjectMetadata has its metadata first; a list of them is as every list."""
        if "items" not in obj:
            return bytes_field(1, self._message(_OBJECT_META, obj.get("metadata") or {}))
        head = self._message(_LIST_META.name, obj.get("metadata") or {})
        items = (bytes_field(2, self._partial(item)) for item in obj["items"])
        return bytes_field(1, head) + b"".join(items)

    def _list(self, name: str, obj: Obj) -> bytes:
        """Every list has its metadata first, and its items second."""
        element = self.schema.fields_of(name)["items"].element
        assert element is not None, name
        out = bytearray(bytes_field(1, self._message(_LIST_META.name, obj.get("metadata") or {})))
        for item in obj.get("items") or ():
            out += bytes_field(2, self._message(element.name, item))
        return bytes(out)

    def _message(self, name: str, obj: Obj, holder: str = "") -> bytes:
        puts = self._puts.get((name, holder))
        if puts is None:
            puts = self._puts[name, holder] = self._compiled(name, holder or name)
        out = bytearray()
        for put in puts:
            put(obj, out)
        return bytes(out)

    def _compiled(self, name: str, holder: str) -> list[Put]:
        """`holder` is whose schema knows the fields: the message itself, or where it is inlined."""
        if name not in self._messages:
            raise NotWritable(f"{name} has no form in protobuf")
        types = self.schema.fields_of(holder)
        return [
            self._inline(number, inlined_message(name, token), holder)
            if token.startswith("*")
            else self._put(number, token.rstrip("!?"), types[token.rstrip("!?")])
            for number, token in self._messages[name].items()
        ]

    def _inline(self, number: int, name: str, holder: str) -> Put:
        def put(obj: Obj, out: bytearray) -> None:
            out += bytes_field(number, self._message(name, obj, holder))

        return put

    def _put(self, number: int, key: str, kind: Type) -> Put:
        if kind.shape == "map":
            return self._map_put(number, key, kind)
        many = kind.shape == "list"
        element = kind.element if many and kind.element is not None else kind
        wire, write = self._value(element)
        tag = varint(number << 3 | wire)

        def put(obj: Obj, out: bytearray) -> None:
            value = obj.get(key)
            if value is None:
                return
            for item in value if many else (value,):
                data = write(item)
                out.extend(tag if wire != LENGTH else tag + varint(len(data)))
                out.extend(data)

        return put

    def _map_put(self, number: int, key: str, kind: Type) -> Put:
        assert kind.element is not None, kind
        write = _string_list if kind.element.shape == "list" else self._value(kind.element)[1]

        def put(obj: Obj, out: bytearray) -> None:
            for name, value in sorted((obj.get(key) or {}).items()):
                out.extend(
                    bytes_field(
                        number, bytes_field(1, name.encode()) + bytes_field(2, write(value))
                    )
                )

        return put

    def _value(self, kind: Type) -> tuple[int, Write]:
        """(wire type, how to write it)."""
        if kind.shape == "object":
            return LENGTH, lambda value: self._message(kind.name, value)
        if kind.shape == "any":
            return LENGTH, self._free(kind.name)
        if kind.shape == "integer":
            return VARINT, lambda value: varint(value & 0xFFFFFFFFFFFFFFFF)
        if kind.shape == "boolean":
            return VARINT, lambda value: b"\1" if value else b"\0"
        if kind.shape == "number":
            return FIXED64, lambda value: struct.pack("<d", value)
        return LENGTH, _TEXTS[kind.format]

    def _free(self, name: str) -> Write:
        match name.rpartition(".")[2]:
            case "JSONSchemaPropsOrBool":
                return lambda value: (
                    b"\x08" + (b"\1" if value else b"\0")
                    if isinstance(value, bool)
                    else b"\x08\1" + bytes_field(2, self._message(_SCHEMA, value))
                )
            case "JSONSchemaPropsOrArray":
                return lambda value: (
                    b"".join(bytes_field(2, self._message(_SCHEMA, item)) for item in value)
                    if isinstance(value, list)
                    else bytes_field(1, self._message(_SCHEMA, value))
                )
            case "JSONSchemaPropsOrStringArray":
                return lambda value: (
                    b"".join(bytes_field(2, item.encode()) for item in value)
                    if isinstance(value, list)
                    else bytes_field(1, self._message(_SCHEMA, value))
                )
        return lambda value: bytes_field(1, orjson.dumps(value))


def in_envelope(api_version: str, kind: str, body: bytes) -> bytes:
    """`k8s\\0` and a runtime.Unknown."""
    type_meta = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    unknown = bytes_field(1, type_meta) + bytes_field(2, body)
    return MAGIC + unknown + bytes_field(3, b"") + bytes_field(4, b"")


def _string_list(values: list[str]) -> bytes:
    return b"".join(bytes_field(1, value.encode()) for value in values)


def _moment(text: str) -> bytes:
    moment = datetime.fromisoformat(text)
    seconds = int(moment.replace(microsecond=0).timestamp())
    out = b"\x08" + varint(seconds & 0xFFFFFFFFFFFFFFFF)
    return out + b"\x10" + varint(moment.microsecond * 1000)


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\1\x10\0" + bytes_field(3, value.encode())
    return b"\x08\0\x10" + varint(value & 0xFFFFFFFFFFFFFFFF) + bytes_field(3, b"")


_TEXTS: dict[str, Write] = {
    "": lambda value: str(value).encode(),
    "byte": base64.b64decode,
    "date-time": _moment,
    "micro-time": _moment,
    "quantity": lambda value: bytes_field(1, str(value).encode()),
    "int-or-string": _int_or_string,
}
