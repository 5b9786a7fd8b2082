"""Values in protobuf's wire form: numbers, strings, and the messages with a JSON form of their own.

Job: bytes data[at:end] → one JSON value. Pure.
Invariant: a reader returns a JSON value, None for nothing, or raises ProtobufError; IndexError and
    UnicodeDecodeError mean that the bytes ended early or are no text.
"""

import base64
import math
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from sampan.api.schema.field_kinds import Type

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

# (data, at, end, depth) → JSON value; of a varint, `at` is the number itself.
Value = Callable[[bytes, int, int, int], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProtobufError(ValueError):
    """The bytes are no object of a kind that we can read; the text says why."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(unsigned number of 64 bits, where it ends)."""
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise ProtobufError("integer overflow")


def fixed_size(wire: int) -> int:
    if wire == FIXED64:
        return 8
    if wire == FIXED32:
        return 4
    raise ProtobufError(f"illegal wire type {wire}")


def each_field(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, wire type, start, end) of each field; of a varint, start is the number itself."""
    while at < end:
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == VARINT:
            start, at = varint(data, at)
        else:
            size, start = varint(data, at) if wire == LENGTH else (fixed_size(wire), at)
            at = start + size
        if at > end:
            raise ProtobufError("unexpected EOF")
        yield tag >> 3, wire, start, at


def plain_fields(data: bytes, at: int, end: int) -> dict[int, int | bytes]:
    """Number → content of a message without lists; the last of several wins."""
    return {
        number: start if wire == VARINT else data[start:stop]
        for number, wire, start, stop in each_field(data, at, end)
    }


def map_entry(data: bytes, at: int, end: int) -> tuple[str, int, int]:
    """(key, start, end of the value). Both may be left out where they are empty."""
    key, start, stop = "", end, end
    for number, wire, first, last in each_field(data, at, end):
        if wire != LENGTH:
            raise ProtobufError("a map's entry must be a string and a string or a message")
        if number == 1:
            key = data[first:last].decode()
        elif number == 2:
            start, stop = first, last
    return key, start, stop


def as_bytes(content: int | bytes) -> bytes:
    if isinstance(content, int):
        raise ProtobufError("a number where a string or a message is expected")
    return content


def as_signed(content: int | bytes) -> int:
    if not isinstance(content, int):
        raise ProtobufError("a string or a message where a number is expected")
    return _int64(b"", content, 0, 0)


def json_value(raw: bytes) -> Any:
    """JSON inside of protobuf: RawExtension, FieldsV1, JSON."""
    if not raw:
        return None
    try:
        return orjson.loads(raw)
    except ValueError as error:
        raise ProtobufError(f"raw JSON cannot be read: {error}") from error


def scalar(kind: Type) -> tuple[int, Value]:
    """(wire type, how to read it)."""
    match kind.shape:
        case "string":
            return LENGTH, _TEXTS[kind.format]
        case "integer":
            return VARINT, _int32 if kind.format == "int32" else _int64
        case "boolean":
            return VARINT, _boolean
        case "number":
            return FIXED64, _number
    raise AssertionError(f"{kind.shape} is no scalar")


def text(data: bytes, at: int, end: int, _depth: int) -> str:
    return data[at:end].decode()


def string_list(data: bytes, at: int, end: int, depth: int) -> list[str]:
    """The message that stands for a list where a list cannot stand, as in a map's value."""
    return [
        text(data, start, stop, depth)
        for number, wire, start, stop in each_field(data, at, end)
        if number == 1 and wire == LENGTH
    ]


def _int32(_data: bytes, value: int, _end: int, _depth: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _int64(_data: bytes, value: int, _end: int, _depth: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _boolean(_data: bytes, value: int, _end: int, _depth: int) -> bool:
    return value != 0


def _number(data: bytes, at: int, end: int, _depth: int) -> float | int:
    value: float = struct.unpack("<d", data[at:end])[0]
    if not math.isfinite(value):
        raise ProtobufError("a number is not finite")
    # As Go writes it in JSON: without a point where none is needed.
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _base64(data: bytes, at: int, end: int, _depth: int) -> str:
    return base64.b64encode(data[at:end]).decode()


def _quantity(data: bytes, at: int, end: int, _depth: int) -> str:
    return as_bytes(plain_fields(data, at, end).get(1, b"")).decode() or "0"


def _int_or_string(data: bytes, at: int, end: int, _depth: int) -> int | str:
    parts = plain_fields(data, at, end)
    if parts.get(1, 0) == 1:
        return as_bytes(parts.get(3, b"")).decode()
    return _int32(b"", as_signed(parts.get(2, 0)), 0, 0)


def _moment(data: bytes, at: int, end: int) -> tuple[datetime, int] | None:
    """(time to the second, nanoseconds); None is Go's zero time."""
    if at == end:
        return None
    parts = plain_fields(data, at, end)
    seconds, nanoseconds = as_signed(parts.get(1, 0)), as_signed(parts.get(2, 0))
    if not 0 <= nanoseconds < 1_000_000_000:
        raise ProtobufError("a time's nanoseconds are out of range")
    try:
        return _EPOCH + timedelta(seconds=seconds), nanoseconds
    except OverflowError as error:
        raise ProtobufError("a time's year is out of range") from error


def _time(data: bytes, at: int, end: int, _depth: int) -> str | None:
    moment = _moment(data, at, end)
    return None if moment is None else _seconds_text(moment[0]) + "Z"


def _micro_time(data: bytes, at: int, end: int, _depth: int) -> str | None:
    moment = _moment(data, at, end)
    return None if moment is None else f"{_seconds_text(moment[0])}.{moment[1] // 1000:06}Z"


def _seconds_text(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat()  # strftime does not fill up early years


_TEXTS: dict[str, Value] = {
    "": text,
    "byte": _base64,
    "date-time": _time,
    "int-or-string": _int_or_string,
    "micro-time": _micro_time,
    "quantity": _quantity,
}
