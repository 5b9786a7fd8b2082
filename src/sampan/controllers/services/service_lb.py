"""Load balancers without a cloud: the nodes' own addresses, as k3s' ServiceLB.

Job: decide which addresses a Service of type LoadBalancer has; the nodes' rules do the rest.
Invariant: a Service with a loadBalancerClass is somebody else's.
Invariant: a node is in the status only while it is Ready and may be used for it.
"""

import ipaddress
from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj, is_deleted, key_of, labels_of, name_of, namespace_of
from sampan.api.resources import ENDPOINT_SLICES, NODES, SERVICES
from sampan.api.rules.conditions import is_true
from sampan.controllers.actions import NOTHING, Plan, status_patch
from sampan.controllers.controller import Caches, Controller, View, own_key

NAME = "service-lb-controller"
EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"
SERVICE_NAME = "kubernetes.io/service-name"


def service_lb_controller() -> Controller:
    async def planned(view: View, key: str) -> Plan:
        service = view.cache(SERVICES).get(key)
        if service is None:
            return NOTHING
        slices = view.cache(ENDPOINT_SLICES).by("balanced", key)
        return plan(service, list(view.cache(NODES).all()), slices)

    return Controller(
        name=NAME,
        component="service-controller",
        aliases=("service-lb",),
        wakes={SERVICES: own_key, NODES: _balanced_services, ENDPOINT_SLICES: _service_of_slice},
        planned=planned,
        indices={ENDPOINT_SLICES: {"balanced": _by_service}},
        workers=1,
    )


def plan(service: Obj, nodes: Sequence[Obj], slices: Sequence[Obj]) -> Plan:
    spec, status = service.get("spec") or {}, service.get("status") or {}
    present = (status.get("loadBalancer") or {}).get("ingress") or []
    if spec.get("loadBalancerClass") or is_deleted(service):
        return NOTHING
    balances = spec.get("type") == "LoadBalancer"
    wanted = _ingress(spec, nodes, slices) if balances else []
    if wanted == present:
        return NOTHING
    balancer = {"ingress": wanted} if wanted else {}
    patch = status_patch(SERVICES, service, {**status, "loadBalancer": balancer})
    return NOTHING if patch is None else Plan([patch])


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
    return {
        entry.get("nodeName") or ""
        for piece in slices
        for entry in piece.get("endpoints") or ()
        if (entry.get("conditions") or {}).get("ready") is not False
    }


def _balanced_services(caches: Caches, _old: Obj | None, _new: Obj | None) -> Iterable[str]:
    return [
        key_of(service)
        for service in caches(SERVICES).all()
        if (service.get("spec") or {}).get("type") == "LoadBalancer"
    ]


def _service_of_slice(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    return {key for obj in (old, new) if obj is not None for key in _by_service(obj)}


def _by_service(obj: Obj) -> Iterable[str]:
    name = labels_of(obj).get(SERVICE_NAME)
    return (f"{namespace_of(obj)}/{name}",) if name else ()
