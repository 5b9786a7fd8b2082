"""Tunnel guard: rules by which only nodes use the tunnel, each for its own pods.

Job: the rules about the tunnel's packets and about what is in them, as nftables text. Pure.
Invariant: a packet of the tunnel comes from the address of a Node; none is passed on to one: no pod
    can write any, to its own node or, with that node's address, to another.
Invariant: what comes out of the tunnel is from a range of another node's pods, and for this node's.
"""

import ipaddress
from collections.abc import Iterable, Sequence

from sampan.core.fast_dataclass import dataclass
from sampan.network.netlink import VXLAN_NUMBER, VXLAN_PORT

_NODES, _RANGES = "tunnel-nodes", "tunnel-ranges"
# Before the rules about pods and Services.
_INPUT, _FORWARD = "filter - 20", "filter - 20"
_INNER = "-310"


@dataclass(frozen=True, slots=True)
class TunnelEnds:
    """What the node knows of the tunnel."""

    own: tuple[str, ...]  # this node's addresses
    subnets: tuple[str, ...]  # of its pods
    nodes: frozenset[str] = frozenset()  # the addresses of the others
    ranges: frozenset[str] = frozenset()  # of the others' pods

    @property
    def families(self) -> tuple[str, ...]:
        """Of packets outside and inside, as nftables calls them."""
        return tuple(dict.fromkeys(_family(each) for each in (*self.own, *self.subnets)))


def script(family: str, table: str, tunnel: str, ends: TunnelEnds) -> str:
    """All of it for one family; repeated, it is as the last one said. `tunnel`: the interface."""
    where, kind = f"{family} {table}", "ipv4_addr" if family == "ip" else "ipv6_addr"
    lines = [f"add table {where}"]
    lines += _set(where, f"{_NODES} {{ type {kind}; }}", _of(family, ends.nodes))
    ranges = [str(each) for each in _disjoint(_of(family, ends.ranges))]
    lines += _set(where, f"{_RANGES} {{ type {kind}; flags interval; }}", ranges)
    mine = _of(family, ends.subnets)
    for name, hook, rules in (
        ("tunnel-input", f"input priority {_INPUT}", _outside(family)),
        ("tunnel-forward", f"forward priority {_FORWARD}", _passed_on(family)),
        ("tunnel-inner", f"prerouting priority {_INNER}", _inside(family, tunnel, mine)),
    ):
        lines.append(f"add chain {where} {name} {{ type filter hook {hook}; policy accept; }}")
        lines.append(f"flush chain {where} {name}")
        lines += [f"add rule {where} {name} {rule}" for rule in rules]
    return "\n".join(lines) + "\n"


def _outside(family: str) -> list[str]:
    # At whichever address of this machine: the kernel does not ask. Another program's tunnel may
    # have the same port: its number tells ours.
    ours = f"udp dport {VXLAN_PORT} @th,96,24 {VXLAN_NUMBER}"
    return [f"{ours} {family} saddr != @{_NODES} drop", f"{ours} ct status dnat drop"]


def _passed_on(family: str) -> list[str]:
    return [f"{family} daddr @{_NODES} udp dport {VXLAN_PORT} drop"]


def _inside(family: str, tunnel: str, subnets: Sequence[str]) -> list[str]:
    came = f'iifname "{tunnel}"'
    rules = [f"{came} {family} saddr != @{_RANGES} drop"]
    for subnet in subnets:
        rules.append(f"{came} {family} saddr {subnet} drop")
        rules.append(f"{came} {family} daddr != {subnet} drop")
    return rules


def _set(where: str, told: str, members: Iterable[str]) -> list[str]:
    name = told.partition(" ")[0]
    lines = [f"add set {where} {told}", f"flush set {where} {name}"]
    listed = ", ".join(sorted(members))
    return [*lines, f"add element {where} {name} {{ {listed} }}"] if listed else lines


def _of(family: str, texts: Iterable[str]) -> list[str]:
    return [each for each in texts if _family(each) == family]


def _family(text: str) -> str:
    return "ip6" if ":" in text else "ip"


def _disjoint(
    cidrs: Sequence[str],
) -> list[ipaddress.IPv4Network] | list[ipaddress.IPv6Network]:
    """nft refuses ranges that overlap, and what Nodes say is not checked."""
    fourth = [ipaddress.IPv4Network(each) for each in cidrs if ":" not in each]
    sixth = [ipaddress.IPv6Network(each) for each in cidrs if ":" in each]
    if sixth:
        return list(ipaddress.collapse_addresses(sixth))
    return list(ipaddress.collapse_addresses(fourth))
