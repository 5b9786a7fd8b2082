"""Load balancers without a cloud: the nodes' own addresses, as k3s' ServiceLB.

Job: decide which addresses a Service of type LoadBalancer has; the nodes' rules do the rest.
Invariant: a Service with a loadBalancerClass is somebody else's.
Invariant: a node is in the status only while it is Ready and may be used for it.
Invariant: a port of the nodes' addresses is one Service's: the oldest has it, others wait for it.
Invariant: the ports of a node's own programs are nobody's: a Service that wants one waits for good.
"""

import ipaddress
from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj, is_deleted, key_of, labels_of, name_of
from sampan.api.resources import ENDPOINT_SLICES, NODES, SERVICES
from sampan.api.rules.conditions import is_true
from sampan.api.rules.endpoint_slices import ready_endpoints, services_of_slice
from sampan.client.events import reference
from sampan.controllers.actions import NOTHING, Plan, Record, status_patch
from sampan.controllers.controller import Caches, Controller, View

NAME = "service-lb-controller"
EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"
# sshd, the tunnel between nodes; and what node ports are chosen from. Kubelets say where they are.
RESERVED = frozenset({"22/TCP", "8472/UDP"})
NODE_PORTS = range(30000, 32768)


def service_lb_controller() -> Controller:
    told: dict[str, str] = {}  # who was told what keeps him waiting

    async def planned(view: View, key: str) -> Plan:
        service = view.cache(SERVICES).get(key)
        if service is None:
            told.pop(key, None)
            return NOTHING
        rivals = _sharing_ports(view.cache, service)
        slices = view.cache(ENDPOINT_SLICES).by("balanced", key)
        # Its status lists every node; of any other Service none is looked at.
        nodes = list(view.cache(NODES).all()) if balanced_ports(service) else []
        why = why_reserved(service, nodes) or why_waiting(service, rivals)
        decided = plan(service, [] if why else nodes, slices, rivals)
        before = told.pop(key, "")
        if not why:
            return decided
        told[key] = why
        return decided if why == before else Plan([*decided.actions, _refusal(service, why)])

    return Controller(
        name=NAME,
        component="service-controller",
        aliases=("service-lb",),
        wakes={SERVICES: _rivals, NODES: _balanced_services, ENDPOINT_SLICES: _service_of_slice},
        planned=planned,
        indices={
            ENDPOINT_SLICES: {"balanced": services_of_slice},
            SERVICES: {"ports": balanced_ports},
        },
        workers=1,
    )


def plan(
    service: Obj, nodes: Sequence[Obj], slices: Sequence[Obj], rivals: Sequence[Obj] = ()
) -> Plan:
    """`rivals`: Services that want a port that this one wants."""
    spec, status = service.get("spec") or {}, service.get("status") or {}
    present = (status.get("loadBalancer") or {}).get("ingress") or []
    if spec.get("loadBalancerClass") or is_deleted(service):
        return NOTHING
    balances = spec.get("type") == "LoadBalancer" and not why_waiting(service, rivals)
    wanted = _ingress(spec, nodes, slices) if balances else []
    if wanted == present:
        return NOTHING
    balancer = {"ingress": wanted} if wanted else {}
    patch = status_patch(SERVICES, service, {**status, "loadBalancer": balancer})
    return NOTHING if patch is None else Plan([patch])


def why_waiting(service: Obj, rivals: Sequence[Obj]) -> str:
    """Empty where no older Service has a port that this one wants."""
    for port in balanced_ports(service):
        for rival in sorted(rivals, key=_age):
            if port in balanced_ports(rival) and _age(rival) < _age(service):
                return f"port {port} of the nodes is Service {key_of(rival)}'s"
    return ""


def why_reserved(service: Obj, nodes: Sequence[Obj]) -> str:
    """Empty where none of its ports is one of the nodes' own. (What else listens on a node, that
    node knows: its rules leave it alone.)"""
    kubelets = {f"{_kubelet_port(node)}/TCP" for node in nodes}
    for port in balanced_ports(service):
        number = int(port.partition("/")[0])
        if port in kubelets or port in RESERVED or number in NODE_PORTS:
            return f"port {port} of the nodes is not for load balancers"
    return ""


def _kubelet_port(node: Obj) -> int:
    endpoints = (node.get("status") or {}).get("daemonEndpoints") or {}
    return int((endpoints.get("kubeletEndpoint") or {}).get("Port") or 0)


def _age(service: Obj) -> tuple[str, str]:
    return service["metadata"].get("creationTimestamp") or "", key_of(service)


def balanced_ports(service: Obj) -> list[str]:
    """`80/TCP`: those that a Service wants on the nodes' addresses."""
    spec = service.get("spec") or {}
    if spec.get("type") != "LoadBalancer" or spec.get("loadBalancerClass") or is_deleted(service):
        return []
    return [f"{port['port']}/{port.get('protocol') or 'TCP'}" for port in spec.get("ports") or ()]


def _sharing_ports(caches: Caches, service: Obj) -> list[Obj]:
    found = {
        key_of(other): other
        for port in balanced_ports(service)
        for other in caches(SERVICES).by("ports", port)
        if key_of(other) != key_of(service)
    }
    return list(found.values())


def _rivals(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """The Service itself; and where its ports changed, whoever waits for one of them."""
    before, after = ((balanced_ports(obj) if obj is not None else []) for obj in (old, new))
    woken = {key_of(obj) for obj in (old, new) if obj is not None}
    if before != after:
        for port in {*before, *after}:
            woken.update(key_of(other) for other in caches(SERVICES).by("ports", port))
    return woken


def _refusal(service: Obj, why: str) -> Record:
    message = f"Error syncing load balancer: failed to ensure load balancer: {why}"
    return Record(reference(service), "Warning", "SyncLoadBalancerFailed", message)


def _ingress(spec: Obj, nodes: Sequence[Obj], slices: Sequence[Obj]) -> list[Obj]:
    families = spec.get("ipFamilies") or ["IPv4"]
    here = _nodes_with_endpoints(slices) if _is_local(spec) else None
    return [
        {"ip": ip, "ipMode": "VIP"}
        for node in sorted(nodes, key=name_of)
        if _is_usable(node) and (here is None or name_of(node) in here)
        for ip in _addresses(node, families)
    ]


def _is_local(spec: Obj) -> bool:
    return bool(spec.get("externalTrafficPolicy") == "Local")


def _is_usable(node: Obj) -> bool:
    return not is_deleted(node) and EXCLUDED not in labels_of(node) and is_true(node, "Ready")


def _addresses(node: Obj, families: Sequence[str]) -> list[str]:
    """One of each family: the external one where the node has some."""
    known = (node.get("status") or {}).get("addresses") or ()
    found: list[str] = []
    for family in families:
        for kind in ("ExternalIP", "InternalIP"):
            mine = [
                each["address"]
                for each in known
                if each.get("type") == kind and _is_of(each.get("address", ""), family)
            ]
            if mine:
                found.append(mine[0])
                break
    return found


def _is_of(text: str, family: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.version == (6 if family == "IPv6" else 4) and not address.is_loopback


def _nodes_with_endpoints(slices: Sequence[Obj]) -> set[str]:
    return {entry.get("nodeName") or "" for piece in slices for entry in ready_endpoints(piece)}


def _balanced_services(caches: Caches, _old: Obj | None, _new: Obj | None) -> Iterable[str]:
    return [
        key_of(service)
        for service in caches(SERVICES).all()
        if (service.get("spec") or {}).get("type") == "LoadBalancer"
    ]


def _service_of_slice(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    return {key for obj in (old, new) if obj is not None for key in services_of_slice(obj)}
