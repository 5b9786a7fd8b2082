"""Protobuf's wire format, for messages that are written without descriptors. Pure.

Job: numbers and fields → bytes.
"""

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
