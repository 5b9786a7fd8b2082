"""Endpoints: the addresses behind each Service in the old form, one object per Service.

Job: decide what that object says. Kept for those who still read it; new code reads EndpointSlices.
Invariant: at most MOST addresses, ready ones first, and an annotation where some are missing.
"""

from collections.abc import Hashable, Iterable, Sequence

from sampan.api.errors import AlreadyExists, NotFound
from sampan.api.objects import (
    Obj,
    annotations_of,
    copy_of,
    is_deleted,
    key_of,
    labels_of,
    name_of,
    namespace_of,
)
from sampan.api.resources import ENDPOINTS, PODS, SERVICES
from sampan.api.rules import pods as pod_facts
from sampan.controllers.actions import NOTHING, Create, Plan, Update, deletion
from sampan.controllers.controller import Caches, Controller, View, own_key
from sampan.controllers.services.service_endpoints import (
    HEADLESS,
    OF_PODS,
    OF_SERVICES,
    Port,
    addresses_of,
    families_of,
    has_endpoints,
    hostname_of,
    is_headless,
    pods_of_service,
    ports_of,
    services_of_pod,
    target_of,
)
from sampan.core.fast_dataclass import dataclass

MOST = 1000
MANAGED_BY = "endpoints.kubernetes.io/managed-by"
MANAGER = "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"


def endpoints_controller() -> Controller:
    return Controller(
        name="endpoints-controller",
        component="endpoint-controller",
        aliases=("endpoint",),
        wakes={SERVICES: _service_changed, PODS: services_of_pod, ENDPOINTS: _ours},
        planned=_plan_key,
        indices={SERVICES: OF_SERVICES, PODS: OF_PODS},
    )


def plan(service: Obj, pods: Sequence[Obj], endpoints: Obj | None) -> Plan:
    if is_deleted(service) or not has_endpoints(service):
        return NOTHING
    subsets, truncated = subsets_of(service, pods)
    labels = {k: v for k, v in labels_of(service).items() if k != HEADLESS}
    labels[MANAGED_BY] = MANAGER
    if is_headless(service):
        labels[HEADLESS] = ""
    annotations = {OVER_CAPACITY: "truncated"} if truncated else {}
    if endpoints is None:
        meta = {"name": name_of(service), "namespace": namespace_of(service), "labels": labels}
        if annotations:
            meta["annotations"] = annotations
        made = {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": subsets}
        return Plan([Create(ENDPOINTS, made, settled=(AlreadyExists,))])
    kept = {k: v for k, v in annotations_of(endpoints).items() if k != OVER_CAPACITY}
    wanted = {**kept, **annotations}
    if (
        (endpoints.get("subsets") or []) == subsets
        and labels_of(endpoints) == labels
        and annotations_of(endpoints) == wanted
    ):
        return NOTHING
    changed = copy_of(endpoints)
    changed["subsets"] = subsets
    changed["metadata"]["labels"] = labels
    changed["metadata"]["annotations"] = wanted
    return Plan([Update(ENDPOINTS, changed, settled=(NotFound,))])


def subsets_of(service: Obj, pods: Sequence[Obj]) -> tuple[list[Obj], bool]:
    """One subset for the ports that the very same addresses offer; and whether addresses had to be
    left out."""
    publish_all = bool(service["spec"].get("publishNotReadyAddresses"))
    ipv6 = families_of(service)[0] == "IPv6"
    entries: list[tuple[tuple[Port, ...], bool, Obj]] = []
    for pod in pods:
        addresses = addresses_of(pod, ipv6=ipv6)
        leaving = is_deleted(pod) and not publish_all
        if leaving or pod_facts.is_terminal(pod) or not addresses:
            continue
        ports = ports_of(service, pod)
        if ports or not service["spec"].get("ports"):
            ready = publish_all or pod_facts.is_ready(pod)
            entries.append((ports, ready, _address(service, pod, addresses[0])))
    entries.sort(key=lambda item: (not item[1], item[2]["ip"], item[2]["targetRef"]["uid"] or ""))
    return _repacked(entries[:MOST]), len(entries) > MOST


def _repacked(entries: Sequence[tuple[tuple[Port, ...], bool, Obj]]) -> list[Obj]:
    """As upstream's RepackSubsets: which addresses offer each port, then which ports are alike."""
    offered: dict[Port | None, list[int]] = {}
    for number, (ports, _, _) in enumerate(entries):
        for port in ports or (None,):
            offered.setdefault(port, []).append(number)
    alike: dict[tuple[int, ...], list[Port]] = {}
    for port, numbers in offered.items():
        alike.setdefault(tuple(numbers), []).extend([port] if port is not None else [])
    subsets: list[Obj] = []
    for numbers_, listed in alike.items():
        subset: Obj = {}
        for number in numbers_:
            _, ready, address = entries[number]
            subset.setdefault("addresses" if ready else "notReadyAddresses", []).append(address)
        if listed:
            subset["ports"] = [_port(port) for port in sorted(listed, key=str)]
        subsets.append(subset)
    return sorted(subsets, key=lambda subset: str(subset.get("ports")))


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The key of a Service that was deleted: its Endpoints go with it, whoever wrote them."""

    key: str


async def _plan_key(view: View, key: str | Abandoned) -> Plan:
    of = key.key if isinstance(key, Abandoned) else key
    service, endpoints = view.cache(SERVICES).get(of), view.cache(ENDPOINTS).get(of)
    if service is not None:
        return plan(service, pods_of_service(view.cache, service), endpoints)
    if endpoints is None:
        return NOTHING
    ours = labels_of(endpoints).get(MANAGED_BY) == MANAGER
    return Plan([deletion(ENDPOINTS, endpoints)]) if ours or key != of else NOTHING


def _service_changed(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Hashable]:
    if new is not None:
        return (key_of(new),)
    return (Abandoned(key_of(old)),) if old is not None else ()


def _ours(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    obj = new if new is not None else old
    ours = obj is not None and labels_of(obj).get(MANAGED_BY) == MANAGER
    return own_key(caches, old, new) if ours or new is None else ()


def _address(service: Obj, pod: Obj, ip: str) -> Obj:
    address: Obj = {"ip": ip, "targetRef": target_of(pod)}
    if hostname := hostname_of(service, pod):
        address["hostname"] = hostname
    if node := pod_facts.node_name(pod):
        address["nodeName"] = node
    return address


def _port(port: Port) -> Obj:
    listed = port.as_object()
    return listed if port.name else {k: v for k, v in listed.items() if k != "name"}
