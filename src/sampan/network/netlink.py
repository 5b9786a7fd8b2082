"""The two things about an interface that only netlink can say and set from any network namespace.

Job: read and write an interface's alias. (/sys shows the interfaces of the namespace in which it
    was mounted, which need not be ours.)
Invariant: every request is answered or raises OSError; none waits for longer than a second.
"""

import os
import socket
import struct

_RTM_GETLINK, _RTM_SETLINK = 18, 19
_NLM_F_REQUEST, _NLM_F_ACK = 0x1, 0x4
_NLMSG_ERROR = 2
_IFLA_IFNAME, _IFLA_IFALIAS = 3, 20
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, changed flags
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


def _asked(kind: int, flags: int, attributes: bytes) -> bytes:
    """The answer's body, behind its header."""
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + attributes
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
    data = text.encode() + b"\0"
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
