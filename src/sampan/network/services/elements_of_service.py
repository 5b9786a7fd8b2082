"""A Service and its EndpointSlices as elements of the proxy's maps.

Job: one Service → every element that it has on this node, for one family of addresses. Pure.
Invariant: a Service has elements of its own addresses and ports only, so no other's change with it
    (the hairpin set excepted: that is by endpoint).
"""

import ipaddress
from collections.abc import Hashable, Iterable, Sequence

from sampan.api.objects import Obj, labels_of
from sampan.network.nftables.elements import DROP, ElementKey, Elements, Values, Verdict
from sampan.network.services import ruleset
from sampan.network.services.endpoints import (
    Endpoint,
    NodeView,
    SlicesByPort,
    cluster_endpoints,
    local_endpoints,
)

PROXY_NAME = "service.kubernetes.io/service-proxy-name"
DEFAULT_AFFINITY_SECONDS = 10800
HAIRPIN, ALLOWED_SOURCES = "hairpin", "allowed-sources"


def is_proxied(service: Obj) -> bool:
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") in (None, "", "None"):
        return False
    return PROXY_NAME not in labels_of(service)


def frontend_of(key: ElementKey) -> Hashable:
    """What packets are sent to: (address, protocol, port), or (protocol, port) of nodes. One
    Service answers there, also where several name the same external address."""
    name, values = key
    if name == HAIRPIN or name.startswith("listening-"):
        return key
    return values[:3] if name == ALLOWED_SOURCES else values


def elements_of_service(
    service: Obj, slices: Sequence[Obj], family: str, node: NodeView
) -> Elements:
    elements: Elements = {}
    if not is_proxied(service):
        return elements
    by_port = SlicesByPort(slices, family)
    for port in service["spec"].get("ports") or ():
        _Port(service, port, by_port, family, node).add_to(elements)
    return elements


def served_by_udp(
    service: Obj, slices: Sequence[Obj], family: str, node: NodeView
) -> dict[Values, frozenset[Values]]:
    """What packets are sent to → every endpoint that serves there, chosen or not. Nothing of a port
    where nobody does."""
    found: dict[Values, frozenset[Values]] = {}
    ports = service["spec"].get("ports") or () if is_proxied(service) else ()
    of_udp = [port for port in ports if port.get("protocol") == "UDP"]
    by_port = SlicesByPort(slices if of_udp else (), family)
    for port in of_udp:
        found |= _Port(service, port, by_port, family, node).served()
    return found


class _Port:
    """One port of a Service, while its elements are made."""

    def __init__(
        self, service: Obj, port: Obj, slices: SlicesByPort, family: str, node: NodeView
    ) -> None:
        self._spec, self._port, self._family = service["spec"], port, family
        self._node = node
        self._status = service.get("status") or {}
        self._protocol: str = port.get("protocol") or "TCP"
        found = slices.endpoints(port.get("name") or "", self._protocol, node)
        self._serving = [endpoint for endpoint in found if endpoint.serving]
        self._local = local_endpoints(found)
        self._cluster = cluster_endpoints(found, node)
        self._internal = self._local if self._is_local("internalTrafficPolicy") else self._cluster

    def add_to(self, elements: Elements) -> None:
        number = int(self._port["port"])
        for address in self._addresses(cluster_ips(self._spec)):
            self._add(elements, ruleset.CLUSTER, (address, self._protocol, number), self._internal)
        for address in self._addresses(self._external_addresses()):
            self._add_external(elements, (address, self._protocol, number))
        for address in self._addresses(self._load_balancer_addresses()):
            self._restrict(elements, (address, self._protocol, number))
        node_port = int(self._port.get("nodePort") or 0)
        if node_port:
            self._add_node_port(elements, (self._protocol, node_port))
        for endpoint in {*self._cluster, *self._local}:
            if endpoint.local:
                elements[HAIRPIN, (endpoint.address, endpoint.address)] = None

    def served(self) -> dict[Values, frozenset[Values]]:
        if not self._serving:
            return {}
        endpoints: frozenset[Values] = frozenset(
            (endpoint.address, endpoint.port) for endpoint in self._serving
        )
        number, node_port = int(self._port["port"]), int(self._port.get("nodePort") or 0)
        addresses = [*cluster_ips(self._spec), *self._external_addresses()]
        keys: list[Values] = [
            (address, self._protocol, number) for address in self._addresses(addresses)
        ]
        if node_port:
            keys.append((self._protocol, node_port))
        return dict.fromkeys(keys, endpoints)

    def _is_local(self, policy: str) -> bool:
        return bool(self._spec.get(policy) == "Local")

    def _addresses(self, addresses: Iterable[str]) -> list[str]:
        return [address for address in addresses if (":" in address) == (self._family == "ip6")]

    def _external_addresses(self) -> list[str]:
        """A pod's address is that pod's: nobody claims it for a Service."""
        external = self._spec.get("externalIPs") or []
        found = dict.fromkeys([*external, *self._load_balancer_addresses()])
        return [address for address in found if not self._node.is_pod(address)]

    def _load_balancer_addresses(self) -> list[str]:
        ingress = (self._status.get("loadBalancer") or {}).get("ingress") or ()
        return [
            entry["ip"] for entry in ingress if entry.get("ip") and entry.get("ipMode") != "Proxy"
        ]

    def _add_external(self, elements: Elements, key: Values) -> None:
        """Traffic of the cluster's own pods reaches every endpoint, also under policy Local."""
        self._add(elements, ruleset.EXTERNAL, key, self._cluster)
        if self._is_local("externalTrafficPolicy") and self._cluster:
            self._add(elements, ruleset.LOCAL, key, self._local)

    def _add_node_port(self, elements: Elements, key: Values) -> None:
        self._add(elements, ruleset.NODE_PORT, key, self._cluster)
        if self._is_local("externalTrafficPolicy") and self._cluster:
            self._add(elements, ruleset.LOCAL_NODE_PORT, key, self._local)

    def _add(
        self, elements: Elements, sort: str, key: Values, endpoints: Sequence[Endpoint]
    ) -> None:
        verdicts, empty = _MAPS[sort]
        if not endpoints and not self._cluster:
            elements[empty, key] = None  # nowhere is anybody: refused
            return
        if not endpoints:
            # As upstream: dropped where only this node has none; a load balancer tries another.
            elements[verdicts, key] = DROP
            return
        elements[verdicts, key] = Verdict(ruleset.chain_name(sort, len(endpoints)))
        for slot, endpoint in enumerate(endpoints):
            name = ruleset.slot_name(sort, slot)
            elements[name, key] = (endpoint.address, endpoint.port)
        if self._spec.get("sessionAffinity") == "ClientIP":
            learned = "affinity-nodeports" if len(key) == 2 else "affinity-ips"
            chain = ruleset.chain_name(ruleset.AFFINITY, affinity_seconds(self._spec))
            elements[learned, key] = Verdict(chain)

    def _restrict(self, elements: Elements, key: Values) -> None:
        ranges = self._spec.get("loadBalancerSourceRanges") or ()
        if not ranges:
            return
        elements["restricted-ips", key] = None
        networks = [ipaddress.ip_network(each.strip(), strict=False) for each in ranges]
        version = 6 if self._family == "ip6" else 4
        mine = [network for network in networks if network.version == version]
        for network in _disjoint(mine):
            first, last = str(network[0]), str(network[-1])
            elements[ALLOWED_SOURCES, (*key, first, *key, last)] = None


def _disjoint(
    networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network],
) -> Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    return ipaddress.collapse_addresses(networks)  # type: ignore[type-var]  # of one version


# Where the verdict goes, and where the key goes instead if there are no endpoints.
_MAPS = {
    ruleset.CLUSTER: ("service-ips", "no-endpoint-ips"),
    ruleset.EXTERNAL: ("service-ips", "no-endpoint-ips"),
    ruleset.NODE_PORT: ("service-nodeports", "no-endpoint-nodeports"),
    ruleset.LOCAL: ("local-ips", "no-endpoint-ips"),
    ruleset.LOCAL_NODE_PORT: ("local-nodeports", "no-endpoint-nodeports"),
}


def cluster_ips(spec: Obj) -> list[str]:
    return spec.get("clusterIPs") or [spec["clusterIP"]]


def affinity_seconds(spec: Obj) -> int:
    chosen = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    return int(chosen or DEFAULT_AFFINITY_SECONDS)
