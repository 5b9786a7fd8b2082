"""The rule by which a map learns from packets: which endpoint a client of a Service was sent to.

Job: the rule's expressions as the kernel takes them. (nft 1.0 fails an assertion of its own when it
    is to write it for IPv6; it lists it.) Pure.
Invariant: the key is what the client wrote, the value where its packet goes: (client, address,
    protocol, port) → (endpoint, port), each field in registers of its own.
"""

import struct
from collections.abc import Iterator

from sampan.core.fast_dataclass import dataclass
from sampan.network.nftables.attributes import attribute, nested_attribute, text

# linux/netfilter/nf_tables.h
_FIRST_REGISTER, _REGISTER_BYTES = 8, 4
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2
_L4PROTO, _PROTO_DST = 16, 12
_UPDATE = 1
_DESTINATION_PORT = (2, 2)  # of every transport that Services have: where, and how many bytes
_PROTOCOL_BYTES = _PORT_BYTES = 4  # in registers
_LIST_ENTRY, _NAME, _DATA = 1, 1, 2
_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class _Layout:
    """Of a family of addresses."""

    source_key: int  # of conntrack
    destination_key: int
    destination_at: int  # in the header
    address_bytes: int


_LAYOUTS = {"ip": _Layout(19, 20, 16, 4), "ip6": _Layout(21, 22, 24, 16)}


def learning_rule(family: str, map_name: str, seconds: int) -> bytes:
    layout = _LAYOUTS[family]
    sizes = (layout.address_bytes, layout.address_bytes, _PROTOCOL_BYTES, _PORT_BYTES,
             layout.address_bytes, _PORT_BYTES)  # fmt: skip
    client, address, protocol, port, endpoint, endpoint_port = _registers(sizes)
    return b"".join(
        (
            _original(layout.source_key, client),
            _original(layout.destination_key, address),
            _expression("meta", _number(1, protocol), _number(2, _L4PROTO)),
            _original(_PROTO_DST, port),
            _header(endpoint, _NETWORK_HEADER, layout.destination_at, layout.address_bytes),
            _header(endpoint_port, _TRANSPORT_HEADER, *_DESTINATION_PORT),
            _expression(
                "dynset", text(1, map_name), _number(3, _UPDATE), _number(4, client),
                _number(5, endpoint), attribute(6, struct.pack(">Q", seconds * _MILLISECONDS)),
            ),
        )
    )  # fmt: skip


def _registers(sizes: tuple[int, ...]) -> Iterator[int]:
    register = _FIRST_REGISTER
    for size in sizes:
        yield register
        register += size // _REGISTER_BYTES


def _original(key: int, register: int) -> bytes:
    """What conntrack knows of the connection's first packet, before it was sent elsewhere."""
    return _expression("ct", _number(1, register), _number(2, key), attribute(3, b"\0"))


def _header(register: int, base: int, at: int, length: int) -> bytes:
    places = (register, base, at, length)
    return _expression("payload", *(_number(*each) for each in enumerate(places, start=1)))


def _expression(name: str, *data: bytes) -> bytes:
    inside = text(_NAME, name) + nested_attribute(_DATA, b"".join(data))
    return nested_attribute(_LIST_ENTRY, inside)


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack(">I", value))
