"""Protobuf decoding: bytes in, the JSON form out.

Job: read `k8s\\0` + runtime.Unknown and the message inside, led by the schema and a table of field
    numbers. Only reading: writer.py writes. Pure.
Invariant: what comes out is what the same client would have sent as JSON.
Invariant: a field whose number is not known is reported unless it is empty, never dropped in
    silence (Go writes empty fields too, and newer clients have fields that we do not).
Invariant: whatever the bytes are, reading them ends in an object or in ProtobufError, and takes
    time in proportion to their number.
"""

from collections.abc import Callable
from dataclasses import field

from sampan.api.objects import Obj
from sampan.api.protobuf import values
from sampan.api.protobuf.values import LENGTH, VARINT, ProtobufError, varint
from sampan.api.schema.field_kinds import Type, short_name
from sampan.api.schema.message_table import inlined_message, load_messages
from sampan.api.schema.published import Schema
from sampan.core.fast_dataclass import dataclass

__all__ = ["MAGIC", "ProtobufError", "ProtobufReader"]

MAGIC = b"k8s\0"
MAX_DEPTH = 100  # a schema inside of a CustomResourceDefinition goes deepest, and not that deep

_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_SCHEMA = Type("object", name=_EXTENSIONS + "JSONSchemaProps")

# How a field's bytes data[at:end] are put into its message; a number is passed as `at`.
Put = Callable[[bytes, int, int, Obj, int], None]


@dataclass(slots=True)
class _Message:
    name: str
    numbers: dict[int, str]
    puts: dict[int, Put] | None = None  # by tag (number and wire type); made when first needed


@dataclass(slots=True)
class ProtobufReader:
    """Compiles the fields of a message when it is first met. Serves one body at a time."""

    schema: Schema
    _messages: dict[str, _Message] = field(default_factory=dict)  # that were met
    _problems: list[str] = field(default_factory=list)

    def object_in(self, body: bytes, expected: tuple[str, str] = ("", "")) -> tuple[Obj, list[str]]:
        """(object, unknown fields). `expected` says what it is where the body does not.
        Raises ProtobufError."""
        self._problems = []
        try:
            obj = self._envelope(body, expected, 0)
        except IndexError as error:
            raise ProtobufError("unexpected EOF") from error
        except UnicodeDecodeError as error:
            raise ProtobufError("a string is not valid UTF-8") from error
        return obj, self._problems

    def _envelope(self, body: bytes, expected: tuple[str, str], depth: int) -> Obj:
        if not body.startswith(MAGIC):
            raise ProtobufError(
                "provided data does not appear to be a protobuf message, expected prefix "
                f"{list(MAGIC)}"
            )
        parts = values.plain_fields(body, len(MAGIC), len(body))
        head = values.as_bytes(parts.get(1, b""))
        type_meta = values.plain_fields(head, 0, len(head))
        api_version, kind = (values.as_bytes(type_meta.get(n, b"")).decode() for n in (1, 2))
        api_version, kind = api_version or expected[0], kind or expected[1]
        obj: Obj = {"apiVersion": api_version, "kind": kind}
        raw = values.as_bytes(parts.get(2, b""))
        self._read(self._message_of(api_version, kind), raw, 0, len(raw), obj, depth)
        return obj

    def _message_of(self, api_version: str, kind: str) -> _Message:
        name = _DELETE_OPTIONS  # every group has them
        if kind != "DeleteOptions":
            name = self.schema.name_of(api_version, kind) or ""
        try:
            return self._known(name)
        except KeyError:
            raise ProtobufError(
                f'no kind "{kind}" is registered for version "{api_version}"'
            ) from None

    def _known(self, name: str) -> _Message:
        message = self._messages.get(name)
        if message is None:
            message = self._messages[name] = _Message(name, load_messages()[name])
        return message

    def _read(
        self, message: _Message, data: bytes, at: int, end: int, out: Obj, depth: int
    ) -> None:
        """Fold the fields of data[at:end] into `out`; one that is there twice is merged."""
        if depth > MAX_DEPTH:
            raise ProtobufError("exceeded max depth")
        puts = message.puts
        if puts is None:
            puts = message.puts = self._compile(message, message.name)
        while at < end:
            tag = data[at]
            at += 1
            if tag > 127:
                tag, at = varint(data, at - 1)
            wire = tag & 7
            if wire == LENGTH:
                size = data[at]
                at += 1
                if size > 127:
                    size, at = varint(data, at - 1)
                stop = at + size
            elif wire == VARINT:
                value = data[at]
                stop = at + 1
                if value > 127:
                    value, stop = varint(data, at)
                at = value
            else:
                stop = at + values.fixed_size(wire)
            if stop > end:
                raise ProtobufError("unexpected EOF")
            put = puts.get(tag)
            if put is not None:
                put(data, at, stop, out, depth)
            else:
                self._not_known(message, tag, at if wire == VARINT else stop - at)
            at = stop

    def _not_known(self, message: _Message, tag: int, content: int) -> None:
        """`content` is 0 where there is none."""
        number = tag >> 3
        kind = short_name(message.name)
        if number == 0 or number in message.numbers:
            raise ProtobufError(f"{kind}: illegal tag {number} (wire type {tag & 7})")
        if content:
            self._problems.append(f'unknown field "{kind}" number {number}')

    def _compile(self, message: _Message, holder: str) -> dict[int, Put]:
        """`holder` is whose schema knows the fields: the message itself, or where it is inlined."""
        types = self.schema.fields_of(holder)
        puts: dict[int, Put] = {}
        for number, name in message.numbers.items():
            if name.startswith("*"):
                inner = self._known(inlined_message(message.name, name))
                own = _Message(inner.name, inner.numbers, self._compile(inner, holder))
                puts[number << 3 | LENGTH] = self._inline(own)
                continue
            key = name.rstrip("!?")
            wire, put = self._put(key, types[key], name.endswith(("!", "?")))
            puts[number << 3 | wire] = put
            if wire == VARINT and types[key].shape == "list":
                puts[number << 3 | LENGTH] = _pack(put)
        return puts

    def _inline(self, message: _Message) -> Put:
        def put(data: bytes, at: int, end: int, out: Obj, depth: int) -> None:
            self._read(message, data, at, end, out, depth + 1)

        return put

    def _put(self, key: str, kind: Type, keeps_zero: bool) -> tuple[int, Put]:
        if kind.shape == "list":
            assert kind.element is not None, kind
            return self._list_put(key, kind.element)
        if kind.shape == "map":
            assert kind.element is not None, kind
            return LENGTH, self._map_put(key, kind.element)
        if kind.shape == "object":
            return LENGTH, self._message_put(key, self._known(kind.name))
        wire, value = self._value(kind)
        keeps_zero |= kind.shape == "any" or kind.format == "int-or-string"

        def put(data: bytes, at: int, end: int, out: Obj, depth: int) -> None:
            found = value(data, at, end, depth)
            if found or (keeps_zero and found is not None):
                out[key] = found
            else:
                out.pop(key, None)

        return wire, put

    def _message_put(self, key: str, message: _Message) -> Put:
        def put(data: bytes, at: int, end: int, out: Obj, depth: int) -> None:
            inner = out.get(key)
            if inner is None:
                inner = out[key] = {}
            self._read(message, data, at, end, inner, depth + 1)

        return put

    def _list_put(self, key: str, element: Type) -> tuple[int, Put]:
        wire, value = self._value(element)

        def put(data: bytes, at: int, end: int, out: Obj, depth: int) -> None:
            found = value(data, at, end, depth)
            items = out.get(key)
            if items is None:
                out[key] = [found]
            else:
                items.append(found)

        return wire, put

    def _map_put(self, key: str, element: Type) -> Put:
        value = self._entry(element)

        def put(data: bytes, at: int, end: int, out: Obj, depth: int) -> None:
            name, start, stop = values.map_entry(data, at, end)
            entries = out.get(key)
            if entries is None:
                entries = out[key] = {}
            entries[name] = value(data, start, stop, depth)

        return put

    def _entry(self, element: Type) -> values.Value:
        """Of a map's values: all of them are bytes on the wire, in the kinds that there are."""
        if element.shape == "list":
            # A list as a map's value has a message of its own around it, with one field.
            assert element.element is not None, element
            return values.string_list
        wire, value = self._value(element)
        assert wire == LENGTH, element
        return value

    def _value(self, kind: Type) -> tuple[int, values.Value]:
        """(wire type, how to read it) of a value that stands alone, in a list or in a map."""
        if kind.shape == "object":
            message = self._known(kind.name)

            def read_object(data: bytes, at: int, end: int, depth: int) -> Obj:
                inner: Obj = {}
                self._read(message, data, at, end, inner, depth + 1)
                return inner

            return LENGTH, read_object
        if kind.shape == "any":
            return LENGTH, self._free(kind.name)
        return values.scalar(kind)

    def _free(self, name: str) -> values.Value:
        """What has a JSON form of its own making."""
        match name.removeprefix(_EXTENSIONS):
            case "JSONSchemaPropsOrBool":
                return self._schema_or(2, 1, lambda _data, at, _end, _depth: at != 0)
            case "JSONSchemaPropsOrArray":
                return self._schema_or(1, 2, self._value(_SCHEMA)[1], many=True)
            case "JSONSchemaPropsOrStringArray":
                return self._schema_or(1, 2, values.text, many=True)
        return self._raw

    def _raw(self, data: bytes, at: int, end: int, depth: int) -> object:
        raw = values.as_bytes(values.plain_fields(data, at, end).get(1, b""))
        if not raw.startswith(MAGIC):
            return values.json_value(raw)
        if depth > MAX_DEPTH:
            raise ProtobufError("exceeded max depth")
        return self._envelope(raw, ("", ""), depth + 1)

    def _schema_or(
        self, schema_number: int, other_number: int, other: values.Value, many: bool = False
    ) -> values.Value:
        """A schema, or what else may stand in its place."""
        schema = self._value(_SCHEMA)[1]

        def read(data: bytes, at: int, end: int, depth: int) -> object:
            found: object = None
            others: list[object] = []
            for number, _, start, stop in values.each_field(data, at, end):
                if number == schema_number:
                    found = schema(data, start, stop, depth)
                elif number == other_number:
                    others.append(other(data, start, stop, depth))
            if many:
                return others or found
            return found if found is not None else others and others[-1]

        return read


def _pack(put: Put) -> Put:
    """Numbers of a list may come in one piece."""

    def put_all(data: bytes, at: int, end: int, out: Obj, depth: int) -> None:
        while at < end:
            value, at = varint(data, at)
            put(data, value, at, out, depth)
        if at > end:
            raise ProtobufError("unexpected EOF")

    return put_all
