"""Connections that the kernel remembers: those of UDP outlive the endpoint that they went to.

Job: find and forget the tracked connections of one protocol to one port whose answers come from an
    endpoint that is no longer one.
Invariant: a connection to an endpoint that still serves is never forgotten.
"""

import socket
import struct
from collections.abc import Collection, Iterator

from sampan.network.nftables.attributes import (
    GENERIC,
    attribute,
    attributes,
    message,
    nested_attribute,
    number_of_error,
    split,
)
from sampan.network.nftables.dumps import answers
from sampan.network.nftables.elements import PROTOCOLS, Values

_NETLINK_NETFILTER = 12
_SUBSYSTEM, _GET, _DELETE = 1, 1, 2
_REQUEST, _ACK, _DUMP = 0x1, 0x4, 0x300
_ERROR = 2
# linux/netfilter/nfnetlink_conntrack.h
_ORIGINAL, _REPLY, _FILTER = 1, 2, 25
_TUPLE_IP, _TUPLE_PROTOCOL = 1, 2
_V4_SOURCE, _V4_TARGET, _V6_SOURCE, _V6_TARGET = 1, 2, 3, 4
_PROTOCOL_NUMBER, _SOURCE_PORT, _TARGET_PORT = 1, 2, 3
_FILTER_ORIGINAL = 1
_BY_PROTOCOL, _BY_TARGET_PORT = 1 << 3, 1 << 5
_ANSWER_BYTES = 1 << 16
_ANSWER_SECONDS = 10.0


def forget(family: str, service: Values, endpoints: Collection[Values]) -> int:
    """`service` is (address, protocol, port), or (protocol, port) of any address. The number of
    connections that were forgotten; raises OSError."""
    protocol, port = str(service[-2]), int(service[-1])
    address = str(service[0]) if len(service) == 3 else ""
    forgotten = 0
    number = {"ip": socket.AF_INET, "ip6": socket.AF_INET6}[family]
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as netlink:
        netlink.settimeout(_ANSWER_SECONDS)
        for original, target, source in list(_tracked_connections(netlink, number, protocol, port)):
            if target[1] != port or (address and target[0] != address) or source in endpoints:
                continue
            content = GENERIC.pack(number, 0, 0) + nested_attribute(_ORIGINAL, original)
            netlink.send(message(_SUBSYSTEM << 8 | _DELETE, _REQUEST | _ACK, 1, content))
            forgotten += _was_there(netlink.recv(_ANSWER_BYTES))
    return forgotten


def _tracked_connections(
    netlink: socket.socket, family: int, protocol: str, port: int
) -> Iterator[tuple[bytes, Values, Values]]:
    """The connection's own tuple, where it was sent to, and where its answers come from."""
    wanted = attribute(_PROTOCOL_NUMBER, bytes([PROTOCOLS[protocol]]))
    wanted += attribute(_TARGET_PORT, struct.pack(">H", port))
    body = GENERIC.pack(family, 0, 0)
    body += nested_attribute(_ORIGINAL, nested_attribute(_TUPLE_PROTOCOL, wanted))
    flags = struct.pack("=I", _BY_PROTOCOL | _BY_TARGET_PORT)
    body += nested_attribute(_FILTER, attribute(_FILTER_ORIGINAL, flags))
    netlink.send(message(_SUBSYSTEM << 8 | _GET, _REQUEST | _DUMP, 1, body))
    for content in answers(netlink):
        entry = attributes(content[GENERIC.size :])
        original, reply = _ends(entry[_ORIGINAL]), _ends(entry[_REPLY])
        yield entry[_ORIGINAL], original[1], reply[0]


def _ends(data: bytes) -> tuple[Values, Values]:
    """Source and target, each with its port."""
    parts = attributes(data)
    addresses, ports = attributes(parts[_TUPLE_IP]), attributes(parts[_TUPLE_PROTOCOL])
    return (
        (_text(addresses, _V4_SOURCE, _V6_SOURCE), _port(ports, _SOURCE_PORT)),
        (_text(addresses, _V4_TARGET, _V6_TARGET), _port(ports, _TARGET_PORT)),
    )


def _text(addresses: dict[int, bytes], v4: int, v6: int) -> str:
    if v4 in addresses:
        return socket.inet_ntop(socket.AF_INET, addresses[v4])
    return socket.inet_ntop(socket.AF_INET6, addresses[v6])


def _port(ports: dict[int, bytes], which: int) -> int:
    return int(struct.unpack(">H", ports[which])[0]) if which in ports else 0


def _was_there(answer: bytes) -> bool:
    """It may have run out on its own in the meantime."""
    for kind, content in split(answer):
        if kind == _ERROR:
            return number_of_error(content) == 0
    return False
