"""What only netlink can say and set about interfaces and routes from any network namespace.

Job: read and write an interface's alias; routes, addresses, neighbours, a VXLAN tunnel. (/sys shows
    the interfaces of the namespace in which it was mounted, which need not be ours.)
Invariant: every request is answered or raises OSError; none waits for longer than a second.
"""

import fcntl
import ipaddress
import os
import socket
import struct
from pathlib import Path

_RTM_GETLINK, _RTM_SETLINK = 18, 19
_RTM_NEWLINK, _RTM_DELLINK, _RTM_NEWADDR = 16, 17, 20
_RTM_NEWROUTE, _RTM_DELROUTE, _RTM_NEWNEIGH = 24, 25, 28
_NLM_F_REQUEST, _NLM_F_ACK = 0x1, 0x4
_NLM_F_REPLACE, _NLM_F_EXCLUSIVE, _NLM_F_CREATE = 0x100, 0x200, 0x400
_NLMSG_ERROR = 2
_IFLA_IFNAME, _IFLA_IFALIAS = 3, 20
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, changed flags
# family, bits of target and source, type of service, table, protocol, scope, type, flags
_ROUTE = struct.Struct("=BBBBBBBBI")
_MAIN_TABLE, _STATIC, _LINK_SCOPE, _UNICAST = 254, 4, 253, 1
_RTA_DST, _RTA_OIF, _RTA_GATEWAY = 1, 4, 5
_UNIVERSE_SCOPE, _ONLINK = 0, 4
_ADDRESS = struct.Struct("=BBBBI")  # family, bits, flags, scope, interface
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NO_DUPLICATE_DETECTION = 0x02
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # family, interface, state, flags, type
_NDA_DST, _NDA_LLADDR = 1, 2
_PERMANENT, _SELF, _AF_BRIDGE = 0x80, 0x02, 7
_IFLA_ADDRESS, _IFLA_MTU, _IFLA_LINKINFO = 1, 4, 18
_INFO_KIND, _INFO_DATA = 1, 2
_VXLAN_ID, _VXLAN_LOCAL, _VXLAN_LEARNING, _VXLAN_PORT, _VXLAN_LOCAL6 = 1, 4, 7, 15, 17
VXLAN_NUMBER, VXLAN_PORT = 1, 8472  # as flannel's
_IFF_UP = 1
_SIOCGIFMTU = 0x8921
_RTF_GATEWAY = 2
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_ANSWER_SECONDS = 1.0
_ANSWER_BYTES = 65536


def alias_of(interface: str) -> str:
    """Empty where there is no such interface, or no alias."""
    try:
        answer = _ask(_RTM_GETLINK, 0, _attribute(_IFLA_IFNAME, interface))
    except OSError:
        return ""
    return _attributes(answer).get(_IFLA_IFALIAS, b"").rstrip(b"\0").decode(errors="replace")


def set_alias(interface: str, alias: str) -> None:
    """Raises OSError where there is no such interface, or no permission."""
    body = _attribute(_IFLA_IFNAME, interface) + _attribute(_IFLA_IFALIAS, alias)
    _ask(_RTM_SETLINK, _NLM_F_ACK, body)


def add_route(cidr: str, interface: str) -> None:
    """Straight to an interface. FileExistsError where there is one to the same place."""
    network = ipaddress.ip_network(cidr)
    bits, family = network.prefixlen, _family(cidr)
    route = _ROUTE.pack(family, bits, 0, 0, _MAIN_TABLE, _STATIC, _LINK_SCOPE, _UNICAST, 0)
    route += _data(_RTA_DST, network.network_address.packed)
    route += _data(_RTA_OIF, struct.pack("=I", socket.if_nametoindex(interface)))
    _request(_RTM_NEWROUTE, _NLM_F_ACK | _NLM_F_CREATE | _NLM_F_EXCLUSIVE, route)


def set_route(cidr: str, gateway: str, interface: str = "") -> None:
    """By way of `gateway`, which may be on the other side of `interface` without a network of its
    own there."""
    network = ipaddress.ip_network(cidr)
    flags = _ONLINK if interface else 0
    bits, scope, family = network.prefixlen, _UNIVERSE_SCOPE, _family(cidr)
    route = _ROUTE.pack(family, bits, 0, 0, _MAIN_TABLE, _STATIC, scope, _UNICAST, flags)
    route += _data(_RTA_DST, network.network_address.packed)
    route += _data(_RTA_GATEWAY, _packed(gateway))
    if interface:
        route += _data(_RTA_OIF, struct.pack("=I", socket.if_nametoindex(interface)))
    _request(_RTM_NEWROUTE, _NLM_F_ACK | _NLM_F_CREATE | _NLM_F_REPLACE, route)


def delete_route(cidr: str) -> None:
    """What is already gone is no error."""
    network = ipaddress.ip_network(cidr)
    bits, scope = network.prefixlen, 255  # nowhere: of any scope
    route = _ROUTE.pack(_family(cidr), bits, 0, 0, _MAIN_TABLE, 0, scope, 0, 0)
    route += _data(_RTA_DST, network.network_address.packed)
    try:
        _request(_RTM_DELROUTE, _NLM_F_ACK, route)
    except ProcessLookupError:
        return


def own_networks() -> list[str]:
    """Those that this machine reaches without a gateway, pods' bridges and tunnels excepted."""
    return [network for network, _ in _direct_routes()]


def mtu_towards(address: str) -> int:
    """Of the interface that is on the address's network; 0 where there is none."""
    wanted = ipaddress.ip_address(address)
    for network, interface in _direct_routes():
        if wanted in ipaddress.ip_network(network):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                request = struct.pack("16s24x", interface.encode()[:15])
                answer = fcntl.ioctl(control, _SIOCGIFMTU, request)
            return int(struct.unpack_from("=i", answer, 16)[0])
    return 0


def uplinks(address: str) -> tuple[str, ...]:
    """The interfaces by which other machines come: that of the address's network, and those of
    default routes."""
    wanted, found = ipaddress.ip_address(address), set()
    for network, interface in _direct_routes():
        if wanted in ipaddress.ip_network(network):
            found.add(interface)
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        interface, target, _, flags, *_ = line.split()
        if int(target, 16) == 0 and int(flags, 16) & _RTF_GATEWAY:
            found.add(interface)
    found |= {interface for network, interface in _routes_ipv6() if network == "::/0"}
    return tuple(sorted(found))


def gateway_routes() -> set[tuple[str, str]]:
    """Network and gateway."""
    found = set()
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        _, target, gateway, flags, _, _, _, mask, *_ = line.split()
        if int(flags, 16) & _RTF_GATEWAY:
            network, by = (
                socket.inet_ntoa(struct.pack("=I", int(each, 16))) for each in (target, gateway)
            )
            found.add((f"{network}/{int(mask, 16).bit_count()}", by))
    return found | gateway_routes_ipv6(_ipv6_table())


def gateway_routes_ipv6(table: str) -> set[tuple[str, str]]:
    """Of the kernel's table as text. Pure."""
    found = set()
    for line in table.splitlines():
        target, bits, _, _, gateway, _, _, _, flags, _ = line.split()
        if int(flags, 16) & _RTF_GATEWAY:
            network = ipaddress.IPv6Network((bytes.fromhex(target), int(bits, 16)))
            found.add((str(network), str(ipaddress.IPv6Address(bytes.fromhex(gateway)))))
    return found


def _direct_routes() -> list[tuple[str, str]]:
    """Network and interface."""
    found = []
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        interface, target, _, flags, _, _, _, mask, *_ = line.split()
        if int(flags, 16) & _RTF_GATEWAY:
            continue
        address = socket.inet_ntoa(struct.pack("=I", int(target, 16)))
        bits = int(mask, 16).bit_count()
        if bits:
            found.append((f"{address}/{bits}", interface))
    found += routed_networks_ipv6(gateways=False)
    return [each for each in found if not each[1].startswith("sampan")]


def routed_networks_ipv6(*, gateways: bool = True) -> list[tuple[str, str]]:
    """Network and interface; none where the machine has no IPv6."""
    return [each for each in _routes_ipv6(gateways=gateways) if each[0] != "::/0"]


def _routes_ipv6(*, gateways: bool = True) -> list[tuple[str, str]]:
    return parse_routes_ipv6(_ipv6_table(), gateways=gateways)


def _ipv6_table() -> str:
    """Empty where the machine has no IPv6."""
    try:
        return Path("/proc/net/ipv6_route").read_text()
    except FileNotFoundError:
        return ""


def parse_routes_ipv6(table: str, *, gateways: bool = True) -> list[tuple[str, str]]:
    """What is of the machine itself, of one wire, or for many, is left out."""
    found = []
    for line in table.splitlines():
        target, bits, _, _, _, _, _, _, flags, interface = line.split()
        network = ipaddress.IPv6Network((bytes.fromhex(target), int(bits, 16)))
        special = network.is_link_local or network.is_multicast or interface == "lo"
        if not special and (gateways or not int(flags, 16) & _RTF_GATEWAY):
            found.append((str(network), interface))
    return found


def ensure_vxlan(name: str, local: str, hardware: bytes, mtu: int) -> None:
    """A tunnel that learns nothing by itself: `set_tunnel_end` says where who is."""
    details = _data(_VXLAN_ID, struct.pack("=I", VXLAN_NUMBER))
    details += _data(_VXLAN_LOCAL6 if ":" in local else _VXLAN_LOCAL, _packed(local))
    details += _data(_VXLAN_LEARNING, b"\0") + _data(_VXLAN_PORT, struct.pack(">H", VXLAN_PORT))
    info = _attribute(_INFO_KIND, "vxlan") + _data(_INFO_DATA, details)
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, _IFF_UP, _IFF_UP)
    body += _attribute(_IFLA_IFNAME, name) + _data(_IFLA_ADDRESS, hardware)
    body += _data(_IFLA_LINKINFO, info) + _data(_IFLA_MTU, struct.pack("=I", mtu))
    try:
        _request(_RTM_NEWLINK, _NLM_F_ACK | _NLM_F_CREATE | _NLM_F_EXCLUSIVE, body)
    except FileExistsError:
        return


def delete_link(name: str) -> None:
    """What is already gone is no error."""
    try:
        _ask(_RTM_DELLINK, _NLM_F_ACK, _attribute(_IFLA_IFNAME, name))
    except OSError:
        return


def set_address(interface: str, address: str, bits: int) -> None:
    index = socket.if_nametoindex(interface)
    packed = _packed(address)
    # Nobody else has it, and whoever waits for that to be certain cannot listen there meanwhile.
    flags = _NO_DUPLICATE_DETECTION if ":" in address else 0
    body = _ADDRESS.pack(_family(address), bits, flags, 0, index)
    body += _data(_IFA_LOCAL, packed) + _data(_IFA_ADDRESS, packed)
    _request(_RTM_NEWADDR, _NLM_F_ACK | _NLM_F_CREATE | _NLM_F_REPLACE, body)


def set_neighbour(interface: str, address: str, hardware: bytes) -> None:
    index = socket.if_nametoindex(interface)
    body = _NEIGHBOUR.pack(_family(address), index, _PERMANENT, 0, 0)
    body += _data(_NDA_DST, _packed(address)) + _data(_NDA_LLADDR, hardware)
    _request(_RTM_NEWNEIGH, _NLM_F_ACK | _NLM_F_CREATE | _NLM_F_REPLACE, body)


def set_tunnel_end(interface: str, hardware: bytes, node: str) -> None:
    """Frames for `hardware` go to `node`."""
    index = socket.if_nametoindex(interface)
    body = _NEIGHBOUR.pack(_AF_BRIDGE, index, _PERMANENT, _SELF, 0)
    body += _data(_NDA_LLADDR, hardware) + _data(_NDA_DST, _packed(node))
    _request(_RTM_NEWNEIGH, _NLM_F_ACK | _NLM_F_CREATE | _NLM_F_REPLACE, body)


def _family(text: str) -> int:
    """Of an address or a range."""
    return socket.AF_INET6 if ":" in text else socket.AF_INET


def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def _ask(kind: int, flags: int, attributes: bytes) -> bytes:
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
