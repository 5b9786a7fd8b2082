"""Routes to other nodes' pod CIDRs.

Job: Nodes → a route for each other node's range of pods: straight to the node where it is on the
    same network (host-gw), through a VXLAN tunnel where it is not. Pure.
Invariant: never a route to this node's own range, nor two to the same one.
"""

import hashlib
import ipaddress
from collections.abc import Sequence, Set
from typing import Literal

from sampan.api.objects import Obj, is_deleted, name_of
from sampan.api.validation.network.addresses import address_of, network_of
from sampan.core.fast_dataclass import dataclass

Mode = Literal["auto", "host-gw", "vxlan", "none"]

VXLAN_OVERHEAD, VXLAN_OVERHEAD_IPV6 = 50, 70  # bytes of each packet


@dataclass(frozen=True, slots=True)
class PodRoute:
    cidr: str
    node: str  # its address
    tunnel: bool


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The networks that this machine is on itself."""

    networks: tuple[str, ...]

    def has(self, address: str) -> bool:
        found = ipaddress.ip_address(address)
        return any(found in ipaddress.ip_network(network) for network in self.networks)


def pod_routes(
    nodes: Sequence[Obj], own: tuple[str, Sequence[str]], near: Neighbourhood, mode: Mode
) -> dict[str, PodRoute]:
    """By range. `own` is this node's name and addresses: another node at the same address is
    another process on this machine. Of two nodes with the same range the first by name has it."""
    own_name, own_addresses = own
    mine = {cidr for node in nodes if name_of(node) == own_name for cidr in pod_cidrs(node)}
    found: dict[str, PodRoute] = {}
    for node in sorted(nodes, key=name_of):
        addresses = internal_addresses(node)
        ours = name_of(node) == own_name or not set(addresses).isdisjoint(own_addresses)
        if ours or is_deleted(node):
            continue
        end = _of_family(addresses, own_addresses[0])
        for cidr in pod_cidrs(node):
            route = _route(cidr, _of_family(addresses, cidr), end, near, mode)
            if cidr not in mine and cidr not in found and route is not None:
                found[cidr] = route
    return found


def _route(cidr: str, gateway: str, end: str, near: Neighbourhood, mode: Mode) -> PodRoute | None:
    """`gateway`: the node's address of the range's own family; `end`: its end of the tunnel."""
    is_near = bool(gateway) and near.has(gateway)
    if mode == "vxlan" or (mode == "auto" and not is_near):
        return PodRoute(cidr, end, tunnel=True) if end else None
    return PodRoute(cidr, gateway, tunnel=False) if gateway else None


def _of_family(addresses: Sequence[str], sample: str) -> str:
    return next((each for each in addresses if (":" in each) == (":" in sample)), "")


def pod_mtu(uplink: int, mode: Mode, address: str = "") -> int:
    """Of pods' interfaces, by that of the machine's own; 0: not known. Where only some nodes are
    behind the tunnel, the kernel tells pods of its smaller packets when it matters. `address`: of
    this node, between which and others the tunnel is."""
    overhead = VXLAN_OVERHEAD_IPV6 if ":" in address else VXLAN_OVERHEAD
    return uplink - overhead if uplink and mode == "vxlan" else uplink


def pod_cidrs(node: Obj) -> list[str]:
    """What is no range is left out: one Node that says nonsense takes nobody else's routes."""
    spec = node.get("spec") or {}
    listed = spec.get("podCIDRs") or [spec.get("podCIDR") or ""]
    return [str(found) for each in listed if (found := network_of(str(each))) is not None]


def internal_addresses(node: Obj) -> list[str]:
    """Likewise; the API does not look what a node says its addresses are."""
    entries = (node.get("status") or {}).get("addresses") or ()
    addresses = (str(each.get("address")) for each in entries if each.get("type") == "InternalIP")
    return [str(found) for each in addresses if (found := address_of(each)) is not None]


def hardware_address(address: str) -> bytes:
    """Of a node's end of the tunnel: known without being told."""
    packed = ipaddress.ip_address(address).packed
    own = packed if len(packed) == 4 else hashlib.sha256(packed).digest()[:4]
    return bytes([0x0A, 0x58]) + own


def tunnel_address(cidr: str) -> str:
    """Of a node's end of the tunnel among pods: the first of its range, which no pod has."""
    return str(ipaddress.ip_network(cidr)[0])


def changes(
    before: dict[str, PodRoute], after: dict[str, PodRoute]
) -> tuple[Sequence[PodRoute], Sequence[PodRoute]]:
    """Those that go, and those that come or change."""
    gone = [route for cidr, route in before.items() if cidr not in after]
    return gone, [route for cidr, route in after.items() if before.get(cidr) != route]


def lost_routes(
    before: dict[str, PodRoute], after: dict[str, PodRoute], present: Set[tuple[str, str]]
) -> list[PodRoute]:
    """Those that were set, are still wanted, and are not there: network and gateway of `present`
    are what the kernel has."""
    return [
        route
        for cidr, route in after.items()
        if before.get(cidr) == route and (cidr, next_hop(route)) not in present
    ]


def next_hop(route: PodRoute) -> str:
    return tunnel_address(route.cidr) if route.tunnel else route.node
