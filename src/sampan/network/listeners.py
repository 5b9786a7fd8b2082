"""What listens on this machine: ports that no Service and no pod may take from it.

Job: ask the kernel for listening sockets (of TCP, SCTP) and those that anybody may send to (UDP),
    of the network namespace that we are in. Blocking; a fraction of a millisecond.
Invariant: a UDP socket at a port that the kernel chose is somebody's question, not a listener.
"""

import ipaddress
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.network.nftables.attributes import message, number_of_error, split
from sampan.network.nftables.elements import PROTOCOLS

_SOCK_DIAG, _BY_FAMILY = 4, 20
_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE = 2, 3
_LISTENING, _UNCONNECTED = 1 << 10, 1 << 7
_STATES = {"TCP": _LISTENING, "UDP": _UNCONNECTED, "SCTP": _LISTENING}
# family, protocol, extensions, states, then the socket that is asked for: none in particular
_QUESTION = struct.Struct("=BBBxI48x")
# family, state, timer, retransmissions; ports in the network's order; source
_ANSWER = struct.Struct(">BBBBHH16s")
_CHOSEN_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_ANSWER_SECONDS = 1.0
_ANSWER_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Listener:
    address: str  # empty: every one
    protocol: str
    port: int
    families: tuple[str, ...]  # as nftables calls them


def listeners() -> set[Listener]:
    """What the kernel cannot say (a module is missing) is left out."""
    chosen = _chosen_ports()
    found: set[Listener] = set()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
        netlink.settimeout(_ANSWER_SECONDS)
        for protocol in _STATES:
            for family in (socket.AF_INET, socket.AF_INET6):
                for each in _answers(netlink, family, protocol):
                    if protocol != "UDP" or each.port not in chosen:
                        found.add(each)
    return found


def _answers(netlink: socket.socket, family: int, protocol: str) -> Iterator[Listener]:
    question = _QUESTION.pack(family, PROTOCOLS[protocol], 0, _STATES[protocol])
    netlink.send(message(_BY_FAMILY, _REQUEST | _DUMP, 1, question))
    while True:
        for kind, content in split(netlink.recv(_ANSWER_BYTES)):
            if kind == _DONE or (kind == _ERROR and number_of_error(content)):
                return
            if kind == _BY_FAMILY and len(content) >= _ANSWER.size:
                yield _listener(protocol, content)


def _listener(protocol: str, content: bytes) -> Listener:
    family, _, _, _, port, _, source = _ANSWER.unpack_from(content)
    address = ipaddress.ip_address(source[:4] if family == socket.AF_INET else source)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if mapped is not None:
        address = mapped
    if address.is_unspecified:  # of IPv6: most who listen there take IPv4 as well
        return Listener("", protocol, port, ("ip",) if address.version == 4 else ("ip", "ip6"))
    return Listener(str(address), protocol, port, ("ip" if address.version == 4 else "ip6",))


def _chosen_ports() -> range:
    try:
        first, last = _CHOSEN_PORTS.read_text().split()
        return range(int(first), int(last) + 1)
    except (OSError, ValueError):
        return range(32768, 61000)
