"""Whether NetworkPolicies let a pod connect to a pod or a Service, and which of them decide.

Job: both ends and the policies → words. Pure.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from sampan.api.objects import Obj, name_of
from sampan.api.rules.endpoint_slices import ready_endpoints
from sampan.cmd.errors import CannotStart
from sampan.core.fast_dataclass import dataclass
from sampan.network.policies.compiled import EGRESS, CompiledPolicy, Labels
from sampan.network.policies.elements_of_pod import PodView, pod_view
from sampan.network.policies.judgement import Connection, Judgement, judgements
from sampan.network.policies.ruleset import covers_node

_WORDS = {"egress": "leave", "ingress": "come in"}


@dataclass(frozen=True, slots=True)
class Rules:
    policies: Sequence[CompiledPolicy]
    namespaces: Mapping[str, Labels]
    own_node: frozenset[str] = frozenset()  # the addresses of the sender's node

    def judge(self, connection: Connection) -> list[Judgement]:
        return judgements(connection, self.policies, self.namespaces)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A pod by its name, or an address that is no pod's."""

    pod: str
    port: int
    address: str = ""

    @property
    def title(self) -> str:
        return f"pod/{self.pod}" if self.pod else self.address


def judged_lines(title: str, connection: Connection, rules: Rules) -> list[str]:
    found = _judged(connection, rules)
    verdict = "allowed" if all(each.allowed for each in found) else "refused"
    asked = f"{title}, {connection.protocol} {connection.port}"
    if not found:
        return [f"{asked}: allowed: no NetworkPolicy comes between a pod and its own node."]
    return [f"{asked}: {verdict} by NetworkPolicies.", *map(_line, found)]


def service_connection_lines(
    title: str, connections: Sequence[tuple[Endpoint, Connection]], rules: Rules
) -> list[str]:
    """Each endpoint is a connection of its own: policies look at pods, not at Services."""
    verdicts = [(endpoint, _judged(connection, rules)) for endpoint, connection in connections]
    allowed = sum(all(each.allowed for each in found) for _, found in verdicts)
    if allowed == len(verdicts):
        summary = "allowed by NetworkPolicies"
    elif not allowed:
        summary = "refused by NetworkPolicies"
    else:
        summary = f"NetworkPolicies let it reach {allowed} of {len(verdicts)} endpoints"
    lines = [f"{title}: {summary}."]
    for endpoint, found in verdicts:
        lines.append(f"  endpoint {endpoint.title}, port {endpoint.port}:")
        lines += [f"  {_line(each)}" for each in found] or [
            "    no NetworkPolicy comes between a pod and its own node"
        ]
    return lines


def _judged(connection: Connection, rules: Rules) -> list[Judgement]:
    """Between a pod and its node only where its namespace says so; what is no pod is isolated by
    nobody."""
    asked = covers_node(rules.namespaces.get(connection.source.namespace, {}))
    if not asked and set(connection.target.addresses) <= rules.own_node:
        return []
    found = rules.judge(connection)
    return found if connection.target.local else [each for each in found
                                                  if each.direction == EGRESS]  # fmt: skip


def endpoints_of(service: Obj, slices: Sequence[Obj], port: int, protocol: str) -> list[Endpoint]:
    """What is ready behind a port of a Service. Raises CannotStart: no such port."""
    ports = (service.get("spec") or {}).get("ports") or ()
    for each in ports:
        if (each.get("port"), each.get("protocol") or "TCP") == (port, protocol):
            name = each.get("name") or ""
            return [found for piece in slices for found in _ready_behind(piece, name)]
    known = ", ".join(f"{each.get('port')}/{each.get('protocol') or 'TCP'}" for each in ports)
    raise CannotStart(f"service {name_of(service)} has no port {port}/{protocol}: {known}")


def _ready_behind(piece: Obj, port_name: str) -> Iterator[Endpoint]:
    numbers = [
        int(each["port"])
        for each in piece.get("ports") or ()
        if (each.get("name") or "") == port_name and each.get("port")
    ]
    for entry in ready_endpoints(piece) if numbers else ():
        yield from _endpoint(entry, numbers[0])


def _endpoint(entry: Obj, port: int) -> Iterator[Endpoint]:
    target = entry.get("targetRef") or {}
    if target.get("name") and target.get("kind", "Pod") == "Pod":
        yield Endpoint(str(target["name"]), port)
    elif entry.get("addresses"):
        yield Endpoint("", port, str(entry["addresses"][0]))


def view_of_address(address: str) -> PodView:
    """Of what is no pod: only ipBlocks are about it."""
    return PodView("", {}, (address,), local=False)


def addresses_of_node(pod: Obj, node: Obj | None) -> frozenset[str]:
    """Of the pod's own node, and at which it answers its pods."""
    status = pod.get("status") or {}
    hosts = [entry["ip"] for entry in status.get("hostIPs") or () if entry.get("ip")]
    ranges = ((node or {}).get("spec") or {}).get("podCIDRs") or ()
    gateways = [str(ipaddress.ip_network(cidr)[1]) for cidr in ranges]
    return frozenset([*hosts, *gateways])


def view_of(pod: Obj) -> PodView:
    """Raises CannotStart."""
    found = pod_view(pod, (pod.get("spec") or {}).get("nodeName") or "")
    if found is None:
        raise CannotStart(
            f"pod {name_of(pod)} has no address of its own: it has not started, has ended, or "
            "is in the host's network"
        )
    return found


def _line(judgement: Judgement) -> str:
    word = _WORDS[judgement.direction]
    if not judgement.isolating:
        return f"  {judgement.direction}: no policy selects the pod, so everything may {word}"
    selecting = ", ".join(judgement.isolating)
    if judgement.allowing:
        return f"  {judgement.direction}: {', '.join(judgement.allowing)} lets it {word}"
    return f"  {judgement.direction}: {selecting} select(s) the pod, and none lets it {word}"
