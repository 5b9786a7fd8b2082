"""Netlink's attributes: length, type, bytes, filled up to four.

Job: write and read them. Pure.
Invariant: what ends too early is read as far as it goes, never beyond.
"""

import struct
from collections.abc import Iterator

GENERIC = struct.Struct(">BBH")  # family, version, resource
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_NESTED = 0x8000
_TYPE_MASK = 0x3FFF


def message(kind: int, flags: int, sequence: int, content: bytes, port: int = 0) -> bytes:
    return _HEADER.pack(_HEADER.size + len(content), kind, flags, sequence, port) + content


def split(answer: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and content of each message in it."""
    for kind, _, content in split_with_port(answer):
        yield kind, content


def split_with_port(answer: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Likewise, with the port of the socket that it answers, or whose change it tells of."""
    at = 0
    while at + _HEADER.size <= len(answer):
        length, kind, _, _, port = _HEADER.unpack_from(answer, at)
        if length < _HEADER.size:
            return
        yield kind, port, answer[at + _HEADER.size : at + length]
        at += (length + 3) & ~3


def number_of_error(content: bytes) -> int:
    """0 where it only says that all went well."""
    return -int(struct.unpack_from("=i", content)[0])


def text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def nested_attribute(kind: int, content: bytes) -> bytes:
    return attribute(kind | _NESTED, content)


def attribute(kind: int, data: bytes) -> bytes:
    head = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(data), kind)
    return head + data + b"\0" * (-len(data) % 4)


def children(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind & _TYPE_MASK, data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3


def attributes(data: bytes) -> dict[int, bytes]:
    return dict(children(data))
