"""Protobuf's wire format, for messages that are written without descriptors. Pure.

Job: numbers and fields → bytes, and back.
"""

from collections.abc import Iterator

VARINT, FIXED64, LENGTH = 0, 1, 2  # wire types


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def tag(field: int, wire: int) -> bytes:
    return varint(field << 3 | wire)


def varint_field(field: int, number: int) -> bytes:
    return tag(field, VARINT) + varint(number)


def bytes_field(field: int, data: bytes) -> bytes:
    """Texts and inner messages, too: they look the same on the wire."""
    return tag(field, LENGTH) + varint(len(data)) + data


def fields(text: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Of a message that has numbers and lengths only. Raises ValueError where it is none."""
    at = 0
    while at < len(text):
        found, at = _number(text, at)
        number, wire = found >> 3, found & 7
        value, at = _number(text, at)
        if wire == VARINT:
            yield number, value
        elif wire == LENGTH and at + value <= len(text):
            yield number, text[at : at + value]
            at += value
        else:
            raise ValueError("the message cannot be read")


def _number(text: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while at < len(text) and shift < 64:
        byte = text[at]
        at += 1
        found |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return found, at
    raise ValueError("the message cannot be read")


def text_of(value: bytes | int) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
