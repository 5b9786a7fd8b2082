"""Services: their strategy.

Job: what an update keeps, what a type has not, field selectors; the strategy with an allocator.
"""

from dataclasses import replace

from sampan.api.errors import invalid
from sampan.api.objects import Obj, name_of, spec_of
from sampan.api.validation.network.service import validate_families
from sampan.apiserver.registry.services.allocation import (
    NODE_PORT_TYPES,
    Allocator,
    needs_health_port,
)
from sampan.apiserver.registry.strategy import Strategy, path_getter


def prepare_update(service: Obj, old_service: Obj) -> None:
    """As patchAllocatedValues and dropTypeDependentFields: what an update leaves out it keeps, and
    what the new type has no use for goes, unless the update changed it too."""
    spec, old = service.setdefault("spec", {}), spec_of(old_service)
    _drop_what_the_type_has_not(spec, old)
    if spec.get("type") == "ExternalName":
        return
    if old.get("type") != "ExternalName":
        _keep_addresses(spec, old)
    for name in ("ipFamilies", "ipFamilyPolicy"):
        if old.get(name):
            spec.setdefault(name, old[name])
    if spec.get("type") in NODE_PORT_TYPES and old.get("type") in NODE_PORT_TYPES:
        _keep_node_ports(spec, _node_ports(old))
    if needs_health_port(spec) and needs_health_port(old) and old.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", old["healthCheckNodePort"])


def _keep_addresses(spec: Obj, old: Obj) -> None:
    """clusterIP and clusterIPs go together, also for clients that know the first alone."""
    listed = spec.get("clusterIPs") or []
    if not spec.get("clusterIP") and old.get("clusterIP"):
        spec["clusterIP"] = old["clusterIP"]
    same = spec.get("clusterIP") == old.get("clusterIP")
    if same and not listed and old.get("clusterIPs"):
        spec["clusterIPs"] = old["clusterIPs"]
    elif not same and listed == (old.get("clusterIPs") or []):
        spec["clusterIPs"] = [spec["clusterIP"]]


def _keep_node_ports(spec: Obj, before: dict[tuple[object, object], int | None]) -> None:
    for port in spec.get("ports") or ():
        kept = before.get((port.get("protocol"), port.get("port")))
        if kept and not port.get("nodePort"):
            port["nodePort"] = kept


def _drop_what_the_type_has_not(spec: Obj, old: Obj) -> None:
    if spec.get("type") == "ExternalName" and old.get("type") != "ExternalName":
        _drop_unchanged(spec, old, "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
        _drop_unchanged(spec, old, "internalTrafficPolicy")
    if old.get("type") in NODE_PORT_TYPES and spec.get("type") not in NODE_PORT_TYPES:
        if _node_ports(spec) == _node_ports(old):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
        _drop_unchanged(spec, old, "externalTrafficPolicy")
    if old.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop_unchanged(spec, old, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if needs_health_port(old) and not needs_health_port(spec):
        _drop_unchanged(spec, old, "healthCheckNodePort")


def _drop_unchanged(spec: Obj, old: Obj, *names: str) -> None:
    for name in names:
        if name in spec and spec[name] == old.get(name):
            del spec[name]


def _node_ports(spec: Obj) -> dict[tuple[object, object], int | None]:
    return {
        (port.get("protocol"), port.get("port")): port.get("nodePort")
        for port in spec.get("ports") or ()
    }


def prepare_create(service: Obj) -> None:
    """Raises Invalid: families and addresses that contradict each other, and nothing else then."""
    wrong = validate_families(service)
    if wrong:
        raise invalid("Service", "", name_of(service), wrong)


STRATEGY = Strategy(
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    fields={
        "spec.clusterIP": path_getter("spec", "clusterIP"),
        "spec.type": path_getter("spec", "type"),
    },
    returns_deleted=True,
)


def strategy(allocator: Allocator) -> Strategy:
    """Of services that get addresses and ports."""
    return replace(STRATEGY, allocate=allocator.allocate, removed=allocator.removed)
