"""Elements of nftables sets and maps: what the rules look things up in.

Job: the fields of each key and value, and their bytes as the kernel keeps them. Pure.
Invariant: what `encoded` makes, `decoded` reads back.
"""

import enum
import ipaddress
import socket
import struct
from collections.abc import Sequence

from sampan.core.fast_dataclass import dataclass

PROTOCOLS = {"TCP": 6, "UDP": 17, "SCTP": 132}
_PROTOCOL_NAMES = {number: name for name, number in PROTOCOLS.items()}


class Field(enum.Enum):
    IPV4 = enum.auto()
    IPV6 = enum.auto()
    PROTOCOL = enum.auto()
    PORT = enum.auto()
    INTERFACE = enum.auto()
    HARDWARE = enum.auto()


Value = str | int
Values = tuple[Value, ...]
_BYTES = {
    Field.IPV4: 4, Field.IPV6: 16, Field.PROTOCOL: 4, Field.PORT: 4,
    Field.INTERFACE: 16, Field.HARDWARE: 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verdict map answers: goto a chain, or drop."""

    chain: str = ""  # empty: drop


DROP = Verdict()
Data = Verdict | Values | None
ElementKey = tuple[str, Values]  # the set's name, the key
Elements = dict[ElementKey, Data]


@dataclass(frozen=True, slots=True)
class SetShape:
    """The fields of a set's keys; of a map's values, or `verdicts`."""

    name: str
    key: tuple[Field, ...]
    data: tuple[Field, ...] = ()
    verdicts: bool = False
    intervals: bool = False  # a key is a pair: first and last


def encode(fields: Sequence[Field], values: Values) -> bytes:
    """Every field starts at a register of its own, so each is filled up to four bytes."""
    assert len(fields) == len(values), (fields, values)
    return b"".join(map(_field, fields, values))


def decode(fields: Sequence[Field], data: bytes) -> Values:
    values: list[Value] = []
    at = 0
    for field in fields:
        size = _BYTES[field]
        values.append(_value(field, data[at : at + size]))
        at += size
    return tuple(values)


def _field(field: Field, value: Value) -> bytes:
    match field:
        case Field.IPV4:
            return socket.inet_aton(str(value))
        case Field.IPV6:
            return socket.inet_pton(socket.AF_INET6, str(value))
        case Field.PROTOCOL:
            return struct.pack("B3x", PROTOCOLS[str(value)])
        case Field.PORT:
            return struct.pack(">H2x", value)
        case Field.INTERFACE:
            return struct.pack("16s", str(value).encode())
        case Field.HARDWARE:
            return bytes.fromhex(str(value).replace(":", "")) + b"\0\0"


def _value(field: Field, data: bytes) -> Value:
    match field:
        case Field.IPV4:
            return socket.inet_ntoa(data)
        case Field.IPV6:
            return str(ipaddress.IPv6Address(data))
        case Field.PROTOCOL:
            return _PROTOCOL_NAMES.get(data[0], str(data[0]))
        case Field.PORT:
            return int(struct.unpack(">H2x", data)[0])
        case Field.INTERFACE:
            return data.rstrip(b"\0").decode()
        case Field.HARDWARE:
            return data[:6].hex(":")
