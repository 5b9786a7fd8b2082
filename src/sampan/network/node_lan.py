"""The network between several nodes of one machine: a bridge, and an interface for each of them.

Job: choose its range, make it, connect a node's namespace to it, let nodes out, and take it away.
Invariant: its bridge belongs to one data directory; its alias says to which.
Invariant: the machine itself is the first node, at the range's first address.
"""

import contextlib
import ipaddress
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from sampan.core.files.json_files import Damaged, json_object
from sampan.core.log import get_logger
from sampan.network import bridge, forwarding, iptables
from sampan.network.bridge import NetworkError, PodNetwork
from sampan.network.netlink import add_route, alias_of
from sampan.network.nftables import nft
from sampan.network.pods.interfaces import (
    Veth,
    connect_machine,
    host_interface_name,
    is_there,
    set_up,
    unplug,
)

log = get_logger(__name__)
# Not as pods' bridges are called: what is behind this one is near.
NAMES = "smplan"
RANGES = {"ipv4": "10.89.0.0/16", "ipv6": "fd89:5a4d::/48"}
MOST = 256  # of them on one machine
MOST_NODES = 250  # on one of them
INTERFACE = "eth0"  # of a node
FAMILY = "inet"
_BITS = {4: 24, 6: 64}
_POD_RANGES = range(244, 256)
_POD_RANGE = {"ipv4": "10.{}.0.0/16", "ipv6": "fd00:10:{}::/56"}


def reserve(directory: Path, families: Sequence[str]) -> PodNetwork:
    """The bridge with its addresses; asked again, the same one. Raises NetworkError."""
    mark = bridge.owner_mark(directory)
    known = record(directory)
    if known is not None and alias_of(known.bridge) == mark:
        return known
    routes = bridge.current_routes()
    for network in (*([known] if known is not None else []), *candidates(families)):
        if bridge.is_free(network, routes) and bridge.create(network, mark):
            bridge.write_if_changed(_file(directory), json.dumps(asdict(network)))
            return network
    raise NetworkError(
        f"no free network for nodes in {', '.join(RANGES[each] for each in families)}: every one "
        "overlaps with a route of this machine"
    )


def candidates(families: Sequence[str]) -> Iterator[PodNetwork]:
    """In the order in which they are tried."""
    ranges = [ipaddress.ip_network(RANGES[each]) for each in families]
    subnets = [each.subnets(new_prefix=_BITS[each.version]) for each in ranges]
    for number, chosen in zip(range(MOST), zip(*subnets, strict=False), strict=False):
        yield PodNetwork(f"{NAMES}{number}", *map(str, chosen))


def free_pod_ranges(families: Sequence[str]) -> tuple[str, ...]:
    """For the pods of all nodes: no route of this machine leads there. Raises NetworkError."""
    routes = bridge.current_routes()
    for number in _POD_RANGES:
        chosen = [_POD_RANGE[each].format(number) for each in families]
        if bridge.is_free(PodNetwork("", *chosen), routes):
            return tuple(chosen)
    raise NetworkError("no free range for pods: --cluster-cidr chooses one")


def record(directory: Path) -> PodNetwork | None:
    """What was chosen at an earlier start."""
    file = _file(directory)
    if not file.exists():
        return None
    try:
        found = PodNetwork(**json_object(file))
        addresses_of(found, 1)
        return found if found.bridge.startswith(NAMES) else None
    except (Damaged, ValueError, TypeError, AttributeError) as error:
        log.warning("record of the nodes' network unreadable", file=file, error=error)
        return None


def addresses_of(network: PodNetwork, number: int) -> tuple[str, ...]:
    """Of a node, one of each family; the first is the machine itself."""
    return tuple(str(ipaddress.ip_network(each)[number]) for each in network.subnets)


def port_of(network: PodNetwork, number: int) -> str:
    """The machine's end of a node's wire."""
    return host_interface_name(network.bridge, f"node {number}", INTERFACE)


def connect(network: PodNetwork, number: int, namespace: str) -> None:
    """A node's namespace, unless it is connected. Blocking. Raises OSError."""
    port = port_of(network, number)
    if is_there(port):
        return
    bits = [ipaddress.ip_network(each).prefixlen for each in network.subnets]
    own = zip(addresses_of(network, number), bits, strict=True)
    addresses = tuple(f"{address}/{length}" for address, length in own)
    connect_machine(Veth(network.bridge, port, INTERFACE, namespace, addresses))


def cut(network: PodNetwork, number: int) -> None:
    """Its wire: nothing comes or goes. Raises OSError."""
    set_up(port_of(network, number), up=False)


def mend(network: PodNetwork, number: int) -> None:
    set_up(port_of(network, number), up=True)


def disconnect(network: PodNetwork, number: int) -> None:
    unplug(port_of(network, number))


def let_out(network: PodNetwork, cluster_cidrs: Sequence[str]) -> None:
    """Nodes reach the world by the machine's address, pods as themselves. Raises NetworkError."""
    try:
        for family in network.families:
            forwarding.switch_on(family)
        iptables.masquerade(network, by_nft=True)  # where another firewall forwards nothing
        for cidr in cluster_cidrs:
            # What no node has yet: other clusters of this machine see that it is taken.
            with contextlib.suppress(FileExistsError):
                add_route(cidr, network.bridge)
        nft.replace(FAMILY, network.bridge, rules_of(network, cluster_cidrs))
    except (nft.NftError, OSError) as error:
        raise NetworkError(f"nodes cannot be let out: {error}") from error


def rules_of(network: PodNetwork, cluster_cidrs: Sequence[str]) -> str:
    lines = [f"table {FAMILY} {network.bridge} {{", "chain out {"]
    lines.append("type nat hook postrouting priority srcnat; policy accept;")
    for subnet in network.subnets:
        family = bridge.family_of(subnet)
        pods = ", ".join(each for each in cluster_cidrs if bridge.family_of(each) == family)
        elsewhere = f"{family} daddr != {{ {pods} }} " if pods else ""
        lines.append(f'{family} saddr {subnet} {elsewhere}oifname != "{network.bridge}" masquerade')
    return "\n".join([*lines, "}", "}", ""])


def tear_down(directory: Path) -> None:
    """What `reserve`, `connect` and `let_out` made; wires go with the namespaces."""
    known = record(directory)
    if known is None:
        return
    if alias_of(known.bridge) == bridge.owner_mark(directory):
        with contextlib.suppress(nft.NftError):
            nft.run(f"delete table {FAMILY} {known.bridge}\n")
        iptables.remove_rules(known)
        bridge.delete(known.bridge)
    _file(directory).unlink(missing_ok=True)


def _file(directory: Path) -> Path:
    return directory / "lan.json"
