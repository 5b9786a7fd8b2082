"""Which endpoints of a Service a node sends connections to.

Job: EndpointSlices → the endpoints of one port; traffic policies, topology hints and termination →
    those that are used. Pure.
Invariant: an endpoint that is not ready is used only where none is ready, and only if it still
    serves while it terminates.
As kube-proxy's topology.go.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

ADDRESS_TYPES = {"ip": "IPv4", "ip6": "IPv6"}


@dataclass(frozen=True, slots=True)
class NodeView:
    name: str
    zone: str = ""
    pod_ranges: tuple[IPv4Network | IPv6Network, ...] = ()  # of all pods, where they are known

    def is_pod(self, address: str) -> bool:
        found = ip_address(address)
        return any(found in network for network in self.pod_ranges)


@dataclass(frozen=True, slots=True)
class Endpoint:
    address: str
    port: int
    ready: bool = True
    serving: bool = True
    terminating: bool = False
    local: bool = False
    zones: tuple[str, ...] = ()  # hints: for whom it is meant
    nodes: tuple[str, ...] = ()


class SlicesByPort:
    """The EndpointSlices of a Service, of one family of addresses, by what their ports are called:
    a Service may have thousands of ports."""

    def __init__(self, slices: Iterable[Obj], family: str) -> None:
        self._found: dict[tuple[str, str], list[tuple[Obj, int]]] = {}
        for piece in slices:
            if piece.get("addressType") == ADDRESS_TYPES[family]:
                for port, number in _numbers(piece).items():
                    self._found.setdefault(port, []).append((piece, number))

    def endpoints(self, port_name: str, protocol: str, node: NodeView) -> list[Endpoint]:
        """Sorted, each address and port once."""
        found: dict[tuple[str, int], Endpoint] = {}
        for piece, number in self._found.get((port_name, protocol), ()):
            for entry in piece.get("endpoints") or ():
                endpoint = _endpoint(entry, number, node)
                if endpoint is not None:
                    key = (endpoint.address, endpoint.port)
                    before = found.get(key)
                    # Two slices may name it while a pod moves from one to the other.
                    if before is None or (endpoint.ready and not before.ready):
                        found[key] = endpoint
        return [found[key] for key in sorted(found)]


def _numbers(piece: Obj) -> dict[tuple[str, str], int]:
    """Of ports that are called the same, the first one's; none of a port without a number."""
    found: dict[tuple[str, str], int] = {}
    for port in piece.get("ports") or ():
        key = (port.get("name") or "", port.get("protocol") or "TCP")
        found.setdefault(key, int(port.get("port") or 0))
    return {key: number for key, number in found.items() if number}


def _endpoint(entry: Obj, port: int, node: NodeView) -> Endpoint | None:
    addresses = entry.get("addresses") or ()
    if not addresses:
        return None
    conditions = entry.get("conditions") or {}
    ready = conditions.get("ready") is not False
    serving = conditions.get("serving")
    hints = entry.get("hints") or {}
    return Endpoint(
        address=addresses[0],
        port=port,
        ready=ready,
        serving=ready if serving is None else bool(serving),
        terminating=bool(conditions.get("terminating")),
        local=bool(node.name) and entry.get("nodeName") == node.name,
        zones=tuple(hint.get("name", "") for hint in hints.get("forZones") or ()),
        nodes=tuple(hint.get("name", "") for hint in hints.get("forNodes") or ()),
    )


def cluster_endpoints(endpoints: Sequence[Endpoint], node: NodeView) -> list[Endpoint]:
    """For policy Cluster."""
    ready = [endpoint for endpoint in endpoints if endpoint.ready]
    if ready:
        return _nearby(ready, node)
    return _last_resort(endpoints)


def local_endpoints(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """For policy Local: of this node only, whatever the hints say."""
    here = [endpoint for endpoint in endpoints if endpoint.local]
    ready = [endpoint for endpoint in here if endpoint.ready]
    return ready or _last_resort(here)


def _last_resort(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    return [each for each in endpoints if each.serving and each.terminating]


def _nearby(ready: list[Endpoint], node: NodeView) -> list[Endpoint]:
    """Hints count only where all have them, and one is for here."""
    if all(endpoint.nodes for endpoint in ready):
        mine = [endpoint for endpoint in ready if node.name in endpoint.nodes]
        if mine:
            return mine
    if node.zone and all(endpoint.zones for endpoint in ready):
        mine = [endpoint for endpoint in ready if node.zone in endpoint.zones]
        if mine:
            return mine
    return ready
