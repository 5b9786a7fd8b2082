"""The ways to other nodes' pods.

Job: Nodes → a route for each other node's range of pods: straight to the node where it is on the
    same network (host-gw), through a VXLAN tunnel where it is not. Pure.
Invariant: never a route to this node's own range, nor two to the same one.
"""

import ipaddress
from collections.abc import Sequence
from typing import Literal

from sampan.api.objects import Obj, is_deleted, name_of
from sampan.core.fast_dataclass import dataclass

Mode = Literal["auto", "host-gw", "vxlan", "none"]

VXLAN_OVERHEAD = 50  # bytes of each packet


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
    nodes: Sequence[Obj], own: tuple[str, str], near: Neighbourhood, mode: Mode
) -> dict[str, PodRoute]:
    """By range. `own` is this node's name and address: another node at the same address is another
    process on this machine. Of two nodes with the same range the first by name has it."""
    own_name, own_address = own
    mine = {cidr for node in nodes if name_of(node) == own_name for cidr in pod_cidrs(node)}
    found: dict[str, PodRoute] = {}
    for node in sorted(nodes, key=name_of):
        address = internal_address(node)
        if name_of(node) == own_name or is_deleted(node) or address in ("", own_address):
            continue
        tunnel = mode == "vxlan" or (mode == "auto" and not near.has(address))
        for cidr in pod_cidrs(node):
            if cidr not in mine and cidr not in found and ":" not in cidr:
                found[cidr] = PodRoute(cidr, address, tunnel)
    return found


def pod_mtu(uplink: int, mode: Mode) -> int:
    """Of pods' interfaces, by that of the machine's own; 0: not known. Where only some nodes are
    behind the tunnel, the kernel tells pods of its smaller packets when it matters."""
    return uplink - VXLAN_OVERHEAD if uplink and mode == "vxlan" else uplink


def pod_cidrs(node: Obj) -> list[str]:
    spec = node.get("spec") or {}
    return list(spec.get("podCIDRs") or [each for each in [spec.get("podCIDR")] if each])


def internal_address(node: Obj) -> str:
    for entry in (node.get("status") or {}).get("addresses") or ():
        if entry.get("type") == "InternalIP" and ":" not in entry.get("address", ""):
            return str(entry["address"])
    return ""


def hardware_address(address: str) -> bytes:
    """Of a node's end of the tunnel: known without being told."""
    return bytes([0x0A, 0x58]) + ipaddress.IPv4Address(address).packed


def tunnel_address(cidr: str) -> str:
    """Of a node's end of the tunnel among pods: the first of its range, which no pod has."""
    return str(ipaddress.ip_network(cidr)[0])


def changes(
    before: dict[str, PodRoute], after: dict[str, PodRoute]
) -> tuple[Sequence[PodRoute], Sequence[PodRoute]]:
    """Those that go, and those that come or change."""
    gone = [route for cidr, route in before.items() if cidr not in after]
    return gone, [route for cidr, route in after.items() if before.get(cidr) != route]
