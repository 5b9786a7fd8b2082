"""A pod's network interface: a cable between its network namespace and the node's bridge.

Job: make it, with addresses and routes, look at it, and take it away; all by netlink. Blocking: to
    be called in a thread, since the kernel waits for all readers when an interface goes.
Invariant: every request is answered or raises OSError.
Invariant: a thread is in its own network namespace again when a function returns.
"""

import contextlib
import ctypes
import errno
import hashlib
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.network.nftables.attributes import (
    attribute,
    attributes,
    message,
    nested_attribute,
    number_of_error,
    split,
    text,
)
from sampan.network.pods.addresses import gateway_of
from sampan.network.pods.bandwidth import UNLIMITED, Bandwidth, shaper

_NEW_LINK, _DELETE_LINK, _SET_LINK = 16, 17, 19
_NEW_ADDRESS, _GET_ADDRESS, _NEW_ROUTE, _NEW_QDISC = 20, 22, 24, 36
_REQUEST, _ACK, _DUMP, _REPLACE = 0x1, 0x4, 0x300, 0x100
_EXCLUSIVE, _CREATE = 0x200, 0x400
_ERROR, _DONE = 2, 3
_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, changed flags
_ADDRESS = struct.Struct("=BBBBI")  # family, bits, flags, scope, interface
# family, bits of target and source, type of service, table, protocol, scope, type, flags
_ROUTE = struct.Struct("=BBBBBBBBI")
_IFLA_ADDRESS, _IFLA_NAME, _IFLA_MTU, _IFLA_MASTER = 1, 3, 4, 10
_IFLA_LINKINFO, _IFLA_NAMESPACE = 18, 28
_INFO_KIND, _INFO_DATA, _INFO_PORT_KIND, _INFO_PORT_DATA = 1, 2, 4, 5
_VETH_PEER, _BRIDGE_PORT_HAIRPIN = 1, 4
_IFA_ADDRESS, _IFA_LOCAL, _IFA_BROADCAST = 1, 2, 4
_NO_DUPLICATE_DETECTION = 0x02
_RTA_INTERFACE, _RTA_GATEWAY = 4, 5
_MAIN_TABLE, _BOOT_PROTOCOL, _UNICAST = 254, 3, 1
_UP = 1
_LOOPBACK_INDEX = 1
_CLONE_NEWNET = 0x40000000
_ANSWER_SECONDS = 10.0
_ANSWER_BYTES = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Cable:
    """What one pod's interface is to be."""

    bridge: str
    host_interface: str
    interface: str  # inside
    namespace: str  # a path
    addresses: tuple[str, ...]  # 10.244.0.5/24
    mtu: int = 0  # 0: as the kernel likes
    bandwidth: Bandwidth = UNLIMITED


def host_interface_name(bridge: str, container: str, interface: str) -> str:
    """Known without being told, and another one on each of a machine's bridges."""
    told = f"{bridge}/{container}/{interface}"
    return "veth" + hashlib.sha256(told.encode()).hexdigest()[:8]


def hardware_address(addresses: Sequence[str]) -> bytes:
    """Made of the address, so that nobody who remembers the one has a stale other."""
    packed = ipaddress.ip_interface(addresses[0]).ip.packed
    return b"\x0a\x58" + (packed if len(packed) == 4 else hashlib.sha256(packed).digest()[:4])


def hardware_text(address: bytes) -> str:
    return address.hex(":")


def plug(cable: Cable) -> None:
    """Raises OSError; then nothing is left of it but what `unplug` removes."""
    with _opened(cable.namespace) as namespace:
        with _route_socket() as here:
            _requests(here, [_new_cable(cable, namespace), _hairpin(cable)])
            if cable.bandwidth.ingress.rate:  # what our end sends comes to the pod
                ours = socket.if_nametoindex(cable.host_interface)
                body = shaper(ours, cable.bandwidth.ingress)
                _requests(here, [(_NEW_QDISC, _CREATE | _REPLACE, body)])
        with _inside(namespace):
            index = socket.if_nametoindex(cable.interface)
            _ignore_advertisements(cable.interface)
            there = _route_socket()
        with there:
            ups = _link_up(_LOOPBACK_INDEX), _link_up(index)
            _requests(there, [*ups, *_configuration(cable, index)])
            if cable.bandwidth.egress.rate:
                body = shaper(index, cable.bandwidth.egress)
                _requests(there, [(_NEW_QDISC, _CREATE | _REPLACE, body)])


def _ignore_advertisements(interface: str) -> None:
    """Of routers: one pod could send another's packets where it likes. Of the thread's namespace;
    what the kernel has no IPv6 for needs none."""
    with contextlib.suppress(FileNotFoundError):
        Path(f"/proc/sys/net/ipv6/conf/{interface}/accept_ra").write_text("0")


def unplug(host_interface: str) -> None:
    """Both ends; what is already gone is no error."""
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + text(_IFLA_NAME, host_interface)
    with _route_socket() as here:
        try:
            _requests(here, [(_DELETE_LINK, 0, body)])
        except OSError as error:
            if error.errno != errno.ENODEV:
                raise


def is_there(host_interface: str) -> bool:
    try:
        socket.if_nametoindex(host_interface)
    except OSError:
        return False
    return True


def raise_loopback(namespace: str) -> None:
    with _opened(namespace) as opened:
        with _inside(opened):
            there = _route_socket()
        with there:
            _requests(there, [_link_up(_LOOPBACK_INDEX)])


def addresses_inside(namespace: str, interface: str) -> set[str]:
    """What the interface has: 10.244.0.5/24. Raises OSError where there is no such interface."""
    with _opened(namespace) as opened:
        with _inside(opened):
            index = socket.if_nametoindex(interface)
            there = _route_socket()
        with there:
            there.send(message(_GET_ADDRESS, _REQUEST | _DUMP, 1, _ADDRESS.pack(0, 0, 0, 0, 0)))
            return {found for found in _dumped_addresses(there, index) if found}


def _dumped_addresses(netlink: socket.socket, index: int) -> Iterator[str]:
    while True:
        for kind, content in split(netlink.recv(_ANSWER_BYTES)):
            if kind in (_DONE, _ERROR):
                return
            family, bits, _, _, interface = _ADDRESS.unpack_from(content)
            packed = attributes(content[_ADDRESS.size :]).get(_IFA_ADDRESS)
            if interface == index and packed is not None:
                yield f"{socket.inet_ntop(family, packed)}/{bits}"


Request = tuple[int, int, bytes]  # kind, flags, body


def _new_cable(cable: Cable, namespace: int) -> Request:
    """Both ends at once: ours a port of the bridge and up, theirs in its namespace."""
    mtu = attribute(_IFLA_MTU, struct.pack("=I", cable.mtu)) if cable.mtu else b""
    peer = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + text(_IFLA_NAME, cable.interface)
    peer += attribute(_IFLA_ADDRESS, hardware_address(cable.addresses)) + mtu
    peer += attribute(_IFLA_NAMESPACE, struct.pack("=I", namespace))
    info = text(_INFO_KIND, "veth")
    info += nested_attribute(_INFO_DATA, nested_attribute(_VETH_PEER, peer))
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, _UP, _UP) + text(_IFLA_NAME, cable.host_interface)
    body += attribute(_IFLA_MASTER, struct.pack("=I", socket.if_nametoindex(cable.bridge))) + mtu
    body += nested_attribute(_IFLA_LINKINFO, info)
    return _NEW_LINK, _CREATE | _EXCLUSIVE, body


def _hairpin(cable: Cable) -> Request:
    """A pod reaches itself by its Service: what came in by a port may go out by it."""
    info = text(_INFO_PORT_KIND, "bridge")
    info += nested_attribute(_INFO_PORT_DATA, attribute(_BRIDGE_PORT_HAIRPIN, b"\1"))
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + text(_IFLA_NAME, cable.host_interface)
    return _NEW_LINK, 0, body + nested_attribute(_IFLA_LINKINFO, info)


def _link_up(index: int) -> Request:
    return _SET_LINK, 0, _LINK.pack(socket.AF_UNSPEC, 0, index, _UP, _UP)


def _configuration(cable: Cable, index: int) -> Iterator[Request]:
    for address in cable.addresses:
        interface = ipaddress.ip_interface(address)
        bits, packed = interface.network.prefixlen, interface.ip.packed
        family = socket.AF_INET if interface.version == 4 else socket.AF_INET6
        flags = 0 if interface.version == 4 else _NO_DUPLICATE_DETECTION
        body = _ADDRESS.pack(family, bits, flags, 0, index)
        body += attribute(_IFA_LOCAL, packed) + attribute(_IFA_ADDRESS, packed)
        if interface.version == 4:
            body += attribute(_IFA_BROADCAST, interface.network.broadcast_address.packed)
        yield _NEW_ADDRESS, _CREATE | _REPLACE, body
        gateway = ipaddress.ip_address(gateway_of(interface.network)).packed
        route = _ROUTE.pack(family, 0, 0, 0, _MAIN_TABLE, _BOOT_PROTOCOL, 0, _UNICAST, 0)
        route += attribute(_RTA_GATEWAY, gateway)
        route += attribute(_RTA_INTERFACE, struct.pack("=I", index))
        yield _NEW_ROUTE, _CREATE | _REPLACE, route


def _requests(netlink: socket.socket, requests: Sequence[Request]) -> None:
    """All in one message; the first failure is raised when all are answered."""
    netlink.send(
        b"".join(
            message(kind, _REQUEST | _ACK | flags, number, body)
            for number, (kind, flags, body) in enumerate(requests, 1)
        )
    )
    failure = answered = 0
    while answered < len(requests):
        for kind, content in split(netlink.recv(_ANSWER_BYTES)):
            if kind == _ERROR:
                answered += 1
                failure = failure or number_of_error(content)
    if failure:
        raise OSError(failure, os.strerror(failure))


def _route_socket() -> socket.socket:
    """Of the network namespace that the thread is in now."""
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    netlink.settimeout(_ANSWER_SECONDS)
    return netlink


@contextlib.contextmanager
def _opened(namespace: str) -> Iterator[int]:
    descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _inside(namespace: int) -> Iterator[None]:
    """Only this thread, and only for as long as it takes to open a socket there."""
    with _opened("/proc/thread-self/ns/net") as own:
        _enter(namespace)
        try:
            yield
        finally:
            _enter(own)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
