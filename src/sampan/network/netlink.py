"""What only netlink can say and set about interfaces and routes from any network namespace.

Job: read and write an interface's alias; add a route. (/sys shows the interfaces of the namespace
    in which it was mounted, which need not be ours.)
Invariant: every request is answered or raises OSError; none waits for longer than a second.
"""

import ipaddress
import os
import socket
import struct

_RTM_GETLINK, _RTM_SETLINK = 18, 19
_RTM_NEWROUTE = 24
_NLM_F_REQUEST, _NLM_F_ACK = 0x1, 0x4
_NLM_F_EXCLUSIVE, _NLM_F_CREATE = 0x200, 0x400
_NLMSG_ERROR = 2
_IFLA_IFNAME, _IFLA_IFALIAS = 3, 20
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, changed flags
# family, bits of target and source, type of service, table, protocol, scope, type, flags
_ROUTE = struct.Struct("=BBBBBBBBI")
_MAIN_TABLE, _STATIC, _LINK_SCOPE, _UNICAST = 254, 4, 253, 1
_RTA_DST, _RTA_OIF = 1, 4
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_ANSWER_SECONDS = 1.0
_ANSWER_BYTES = 65536


def alias_of(interface: str) -> str:
    """Empty where there is no such interface, or no alias."""
    try:
        answer = _asked(_RTM_GETLINK, 0, _attribute(_IFLA_IFNAME, interface))
    except OSError:
        return ""
    return _attributes(answer).get(_IFLA_IFALIAS, b"").rstrip(b"\0").decode(errors="replace")


def set_alias(interface: str, alias: str) -> None:
    """Raises OSError where there is no such interface, or no permission."""
    body = _attribute(_IFLA_IFNAME, interface) + _attribute(_IFLA_IFALIAS, alias)
    _asked(_RTM_SETLINK, _NLM_F_ACK, body)


def add_route(cidr: str, interface: str) -> None:
    """Straight to an interface. FileExistsError where there is one to the same place."""
    network = ipaddress.ip_network(cidr)
    family = socket.AF_INET if network.version == 4 else socket.AF_INET6
    bits = network.prefixlen
    route = _ROUTE.pack(family, bits, 0, 0, _MAIN_TABLE, _STATIC, _LINK_SCOPE, _UNICAST, 0)
    route += _data(_RTA_DST, network.network_address.packed)
    route += _data(_RTA_OIF, struct.pack("=I", socket.if_nametoindex(interface)))
    _request(_RTM_NEWROUTE, _NLM_F_ACK | _NLM_F_CREATE | _NLM_F_EXCLUSIVE, route)


def _asked(kind: int, flags: int, attributes: bytes) -> bytes:
    return _request(kind, flags, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + attributes)


def _request(kind: int, flags: int, body: bytes) -> bytes:
    """The answer's body, behind its header."""
    header = _HEADER.pack(_HEADER.size + len(body), kind, flags | _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.settimeout(_ANSWER_SECONDS)
        netlink.send(header + body)
        answer = netlink.recv(_ANSWER_BYTES)
    length, answered, *_ = _HEADER.unpack_from(answer)
    content = answer[_HEADER.size : length]
    if answered == _NLMSG_ERROR:
        number = -struct.unpack_from("=i", content)[0]
        if number:
            raise OSError(number, os.strerror(number))
    return content


def _attribute(kind: int, text: str) -> bytes:
    return _data(kind, text.encode() + b"\0")


def _data(kind: int, data: bytes) -> bytes:
    padding = b"\0" * (-len(data) % 4)
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(data), kind) + data + padding


def _attributes(link: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = _LINK.size
    while at + _ATTRIBUTE.size <= len(link):
        length, kind = _ATTRIBUTE.unpack_from(link, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind] = link[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return found
