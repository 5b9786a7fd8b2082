"""A pod as elements of the policies' sets.

Job: which policies select it, and which rules it is a peer of → its elements on this node. Pure.
Invariant: a pod of the host's network has none: its address is the node's.
"""

from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj, labels_of, namespace_of
from sampan.api.rules.pods import is_terminal
from sampan.core.fast_dataclass import dataclass
from sampan.network.dns import publish
from sampan.network.dns.listeners import PORT
from sampan.network.nftables.elements import Elements, Verdict
from sampan.network.policies import ruleset
from sampan.network.policies.compiled import (
    EGRESS,
    INGRESS,
    CompiledPolicy,
    Labels,
    NamedPort,
    PodPeer,
    Rule,
)


@dataclass(frozen=True, slots=True)
class PodView:
    """What policies look at."""

    namespace: str
    labels: Labels
    addresses: tuple[str, ...]
    local: bool
    ports: tuple[tuple[str, str, int], ...] = ()  # name, protocol, number
    shares_address: bool = False  # with its node: only the ports are its own


def pod_view(pod: Obj, node_name: str, addresses: Sequence[str] = ()) -> PodView | None:
    """`addresses` where they are known before the API says so. None where there is nothing to
    judge: no address yet, all containers ended, or the host's network."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if spec.get("hostNetwork") or is_terminal(pod):
        return None
    known = tuple(addresses) or _addresses(status)
    if not known:
        return None
    local = spec.get("nodeName") == node_name or bool(addresses)
    return PodView(namespace_of(pod), labels_of(pod), known, local, _named_ports(spec))


def name_server_view(addresses: Sequence[str]) -> PodView:
    """A node's name server, as policies for cluster DNS name it elsewhere; nothing isolates it."""
    ports = (("dns", "UDP", PORT), ("dns-tcp", "TCP", PORT))
    labels = {"k8s-app": publish.NAME}
    return PodView(publish.NAMESPACE, labels, tuple(addresses), False, ports, shares_address=True)


def _addresses(status: Obj) -> tuple[str, ...]:
    found = tuple(entry["ip"] for entry in status.get("podIPs") or ())
    return found or ((status["podIP"],) if status.get("podIP") else ())


def _named_ports(spec: Obj) -> tuple[tuple[str, str, int], ...]:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return tuple(
        (port["name"], port.get("protocol") or "TCP", int(port["containerPort"]))
        for container in containers
        for port in container.get("ports") or ()
        if port.get("name")
    )


def selecting(
    pod: PodView, policies: Sequence[CompiledPolicy], direction: str
) -> list[CompiledPolicy]:
    """Those that isolate it in this direction."""
    return [
        policy
        for policy in policies
        if policy.rules(direction) is not None and policy.selects(pod.namespace, pod.labels)
    ]


def elements_of_pod(
    pod: PodView,
    policies: Sequence[CompiledPolicy],
    namespaces: Mapping[str, Labels],
    family: str,
) -> Elements:
    elements: Elements = {}
    to_node = ruleset.covers_node(namespaces.get(pod.namespace, {}))
    addresses = [item for item in pod.addresses if (":" in item) == (family == "ip6")]
    for address in addresses:
        if pod.local:
            for direction in (INGRESS, EGRESS):
                mine = selecting(pod, policies, direction)
                if mine:
                    chain = Verdict(ruleset.combination(mine, direction))
                    elements[ruleset.MAPS[direction], (address,)] = chain
                    if direction == EGRESS and to_node:
                        elements[ruleset.TO_NODE, (address,)] = chain
        for policy in policies:
            _add_peers(elements, pod, address, policy, namespaces)
    return elements


def _add_peers(
    elements: Elements,
    pod: PodView,
    address: str,
    policy: CompiledPolicy,
    namespaces: Mapping[str, Labels],
) -> None:
    for direction in (INGRESS, EGRESS):
        for number, rule in enumerate(policy.rules(direction) or ()):
            peer = any(is_peer(pod, each, policy, namespaces) for each in rule.pods)
            if pod.shares_address:
                for protocol, value in _own_ports(pod, rule, peer) if direction == EGRESS else ():
                    name = ruleset.named_name(policy, direction, number)
                    elements[name, (address, protocol, value)] = None
                continue
            if peer:
                elements[ruleset.peers_name(policy, direction, number), (address,)] = None
            if rule.named and _receives(pod, policy, direction, rule, peer):
                name = ruleset.named_name(policy, direction, number)
                for port in rule.named:
                    for protocol, value in named_numbers(pod, port):
                        elements[name, (address, protocol, value)] = None


def _own_ports(pod: PodView, rule: Rule, peer: bool) -> list[tuple[str, int]]:
    """Those that an egress rule is about."""
    return [
        (protocol, number)
        for name, protocol, number in pod.ports
        if ((peer or rule.any_peer) and NamedPort(protocol, name) in rule.named)
        or (peer and rule.lets_port(protocol, number))
    ]


def is_peer(
    pod: PodView, peer: PodPeer, policy: CompiledPolicy, namespaces: Mapping[str, Labels]
) -> bool:
    if peer.namespaces is None:
        if pod.namespace != policy.namespace:
            return False
    elif not peer.namespaces.matches(namespaces.get(pod.namespace, {})):
        return False
    return bool(peer.pods.matches(pod.labels))


def _receives(pod: PodView, policy: CompiledPolicy, direction: str, rule: Rule, peer: bool) -> bool:
    """Whose ports a name is about: the selected pod's for ingress, the peer's for egress."""
    if direction == INGRESS:
        return policy.selects(pod.namespace, pod.labels)
    return rule.any_peer or peer


def named_numbers(pod: PodView, wanted: NamedPort) -> list[tuple[str, int]]:
    return [
        (protocol, number)
        for name, protocol, number in pod.ports
        if name == wanted.name and protocol == wanted.protocol
    ]
