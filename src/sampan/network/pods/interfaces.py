"""A pod's network interface: a veth between its network namespace and the node's bridge.

Job: make it, with addresses and routes, look at it, and take it away; all by netlink. Blocking: to
    be called in a thread, since the kernel waits for all readers when an interface goes.
Invariant: every request is answered or raises OSError.
Invariant: a pod reaches everybody by way of the node, its neighbours on the bridge, too, and nobody
    has to be asked where anybody is: both ends know it. What else a pod says there nobody hears
    (veth_guard.py).
Invariant: a thread is in its own network namespace again when a function returns.
"""

import contextlib
import ctypes
import errno
import fcntl
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
_NEW_NEIGHBOUR, _DELETE_NEIGHBOUR = 28, 29
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
_VETH_PEER, _BRIDGE_PORT_HAIRPIN, _BRIDGE_PORT_LEARNING = 1, 4, 8
_IFA_ADDRESS, _IFA_LOCAL, _IFA_BROADCAST, _IFA_FLAGS = 1, 2, 4, 8
_NO_DUPLICATE_DETECTION, _NO_PREFIX_ROUTE = 0x02, 0x200
_RTA_TARGET, _RTA_INTERFACE, _RTA_GATEWAY = 1, 4, 5
_MAIN_TABLE, _BOOT_PROTOCOL, _UNICAST, _LINK_SCOPE = 254, 3, 1, 253
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # family, interface, state, flags, type
_NDA_TARGET, _NDA_HARDWARE = 1, 2
_PERMANENT, _STATIC, _MASTER = 0x80, 0x40, 0x04
_SIOCGIFHWADDR = 0x8927
_UP = 1
_LOOPBACK_INDEX = 1
_CLONE_NEWNET = 0x40000000
_ANSWER_SECONDS = 10.0
_ANSWER_BYTES = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Veth:
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


def plug(veth: Veth) -> None:
    """Raises OSError; then nothing is left of it but what `unplug` removes."""
    with _opened(veth.namespace) as namespace:
        gateway_hardware = hardware_of(veth.bridge)
        with _route_socket() as here:
            _requests(here, [_new_veth(veth, namespace), _port(veth, learns=False)])
            ours = socket.if_nametoindex(veth.host_interface)
            bridge = socket.if_nametoindex(veth.bridge)
            _requests(here, [_forwarding_entry(veth, ours), *_pod_neighbours(veth, bridge)])
            if veth.bandwidth.ingress.rate:  # what our end sends comes to the pod
                body = shaper(ours, veth.bandwidth.ingress)
                _requests(here, [(_NEW_QDISC, _CREATE | _REPLACE, body)])
        with _inside(namespace):
            index = socket.if_nametoindex(veth.interface)
            _mind_no_neighbours(veth)
            there = _route_socket()
        with there:
            ups = _link_up(_LOOPBACK_INDEX), _link_up(index)
            _requests(there, [*ups, *_configuration(veth, index, gateway_hardware)])
            if veth.bandwidth.egress.rate:
                body = shaper(index, veth.bandwidth.egress)
                _requests(there, [(_NEW_QDISC, _CREATE | _REPLACE, body)])


def connect_machine(veth: Veth) -> None:
    """As `plug`, but what is behind it is a node and no pod: its neighbours are on the wire. Raises
    OSError; then nothing is left of it but what `unplug` removes."""
    with _opened(veth.namespace) as namespace:
        with _route_socket() as here:
            _requests(here, [_new_veth(veth, namespace), _port(veth, learns=True)])
        with _inside(namespace):
            index = socket.if_nametoindex(veth.interface)
            there = _route_socket()
        with there:
            ups = _link_up(_LOOPBACK_INDEX), _link_up(index)
            _requests(there, [*ups, *_way_out(veth, index)])


def set_up(interface: str, *, up: bool) -> None:
    """Raises OSError."""
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, _UP if up else 0, _UP) + text(_IFLA_NAME, interface)
    with _route_socket() as here:
        _requests(here, [(_SET_LINK, 0, body)])


def _mind_no_neighbours(veth: Veth) -> None:
    """Of the thread's namespace. Nobody on the wire says where the world is, and the node is the
    next hop to all of it, whatever the kernel thinks of who is near. A family of addresses that the
    cluster does not have is off: no policy would be about it."""
    has_ipv6 = any(":" in address for address in veth.addresses)
    off = {
        "ipv4/conf/all/accept_redirects": "0",
        f"ipv4/conf/{veth.interface}/accept_redirects": "0",
        f"ipv6/conf/{veth.interface}/accept_ra": "0",
        f"ipv6/conf/{veth.interface}/accept_redirects": "0",
        f"ipv6/conf/{veth.interface}/disable_ipv6": "0" if has_ipv6 else "1",
    }
    for name, value in off.items():
        with contextlib.suppress(FileNotFoundError):  # a kernel without IPv6
            Path("/proc/sys/net", name).write_text(value)


def unplug(host_interface: str, bridge: str = "", addresses: Sequence[str] = ()) -> None:
    """Both ends, and what the node knows of the addresses; what is already gone is no error."""
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + text(_IFLA_NAME, host_interface)
    with _route_socket() as here:
        with _unless_gone():
            _requests(here, [(_DELETE_LINK, 0, body)])
        with _unless_gone():
            index = socket.if_nametoindex(bridge) if addresses else 0
            for address in addresses:
                _requests(here, [(_DELETE_NEIGHBOUR, 0, _neighbour(address, index))])


@contextlib.contextmanager
def _unless_gone() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENODEV, errno.ENOENT):
            raise


def hardware_of(interface: str) -> bytes:
    """Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        asked = struct.pack("16s24x", interface.encode()[:15])
        return fcntl.ioctl(control, _SIOCGIFHWADDR, asked)[18:24]


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


def _new_veth(veth: Veth, namespace: int) -> Request:
    """Both ends at once: ours a port of the bridge and up, theirs in its namespace."""
    mtu = attribute(_IFLA_MTU, struct.pack("=I", veth.mtu)) if veth.mtu else b""
    peer = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + text(_IFLA_NAME, veth.interface)
    peer += attribute(_IFLA_ADDRESS, hardware_address(veth.addresses)) + mtu
    peer += attribute(_IFLA_NAMESPACE, struct.pack("=I", namespace))
    info = text(_INFO_KIND, "veth")
    info += nested_attribute(_INFO_DATA, nested_attribute(_VETH_PEER, peer))
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, _UP, _UP) + text(_IFLA_NAME, veth.host_interface)
    body += attribute(_IFLA_MASTER, struct.pack("=I", socket.if_nametoindex(veth.bridge))) + mtu
    body += nested_attribute(_IFLA_LINKINFO, info)
    return _NEW_LINK, _CREATE | _EXCLUSIVE, body


def _port(veth: Veth, *, learns: bool) -> Request:
    """A pod reaches itself by its Service, and a node its own pods by another node's port: what
    came in by a port may go out by it. And no frame moves anybody's hardware address to the port of
    a pod."""
    data = attribute(_BRIDGE_PORT_HAIRPIN, b"\1")
    data += attribute(_BRIDGE_PORT_LEARNING, b"\1" if learns else b"\0")
    info = text(_INFO_PORT_KIND, "bridge") + nested_attribute(_INFO_PORT_DATA, data)
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + text(_IFLA_NAME, veth.host_interface)
    return _NEW_LINK, 0, body + nested_attribute(_IFLA_LINKINFO, info)


def _forwarding_entry(veth: Veth, port: int) -> Request:
    body = _NEIGHBOUR.pack(socket.AF_BRIDGE, port, _STATIC, _MASTER, 0)
    body += attribute(_NDA_HARDWARE, hardware_address(veth.addresses))
    return _NEW_NEIGHBOUR, _CREATE | _REPLACE, body


def _pod_neighbours(veth: Veth, bridge: int) -> Iterator[Request]:
    """Of the node: who has the pod's addresses, and that nobody can claim them."""
    hardware = attribute(_NDA_HARDWARE, hardware_address(veth.addresses))
    for address in veth.addresses:
        yield _NEW_NEIGHBOUR, _CREATE | _REPLACE, _neighbour(address, bridge) + hardware


def _neighbour(address: str, index: int) -> bytes:
    found = ipaddress.ip_interface(address).ip
    head = _NEIGHBOUR.pack(_family(found), index, _PERMANENT, 0, _UNICAST)
    return head + attribute(_NDA_TARGET, found.packed)


def _family(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> int:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _link_up(index: int) -> Request:
    return _SET_LINK, 0, _LINK.pack(socket.AF_UNSPEC, 0, index, _UP, _UP)


def _configuration(veth: Veth, index: int, gateway_hardware: bytes) -> Iterator[Request]:
    out = attribute(_RTA_INTERFACE, struct.pack("=I", index))
    for address in veth.addresses:
        interface = ipaddress.ip_interface(address)
        yield _NEW_ADDRESS, _CREATE | _REPLACE, _address(interface, index)
        gateway = ipaddress.ip_address(gateway_of(interface.network))
        known = _neighbour(str(gateway), index) + attribute(_NDA_HARDWARE, gateway_hardware)
        yield _NEW_NEIGHBOUR, _CREATE | _REPLACE, known
        family, bits = _family(gateway), gateway.max_prefixlen
        way = (0, 0, _MAIN_TABLE, _BOOT_PROTOCOL)
        near = _ROUTE.pack(family, bits, *way, _LINK_SCOPE, _UNICAST, 0)
        yield _NEW_ROUTE, _CREATE | _REPLACE, near + attribute(_RTA_TARGET, gateway.packed) + out
        far = _ROUTE.pack(family, 0, *way, 0, _UNICAST, 0)
        yield _NEW_ROUTE, _CREATE | _REPLACE, far + attribute(_RTA_GATEWAY, gateway.packed) + out


def _way_out(veth: Veth, index: int) -> Iterator[Request]:
    """Addresses with their network, and the world behind its first one."""
    out = attribute(_RTA_INTERFACE, struct.pack("=I", index))
    for address in veth.addresses:
        interface = ipaddress.ip_interface(address)
        yield _NEW_ADDRESS, _CREATE | _REPLACE, _address(interface, index, near=True)
        gateway = ipaddress.ip_address(gateway_of(interface.network))
        way = _ROUTE.pack(_family(gateway), 0, 0, 0, _MAIN_TABLE, _BOOT_PROTOCOL, 0, _UNICAST, 0)
        yield _NEW_ROUTE, _CREATE | _REPLACE, way + attribute(_RTA_GATEWAY, gateway.packed) + out


def _address(
    interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface, index: int, *, near: bool = False
) -> bytes:
    """Of a pod without a way to the rest of its network (`near`): that is by the gateway, as to
    everybody else."""
    flags = 0 if near else _NO_PREFIX_ROUTE
    flags |= _NO_DUPLICATE_DETECTION if interface.version == 6 else 0
    body = _ADDRESS.pack(_family(interface.ip), interface.network.prefixlen, 0, 0, index)
    body += attribute(_IFA_LOCAL, interface.ip.packed) + attribute(
        _IFA_ADDRESS, interface.ip.packed
    )
    body += attribute(_IFA_FLAGS, struct.pack("=I", flags))
    if interface.version == 4:
        body += attribute(_IFA_BROADCAST, interface.network.broadcast_address.packed)
    return body


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


def enter(namespace: str) -> None:
    """This thread, and those that it starts. Raises OSError."""
    with _opened(namespace) as opened:
        _enter(opened)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
