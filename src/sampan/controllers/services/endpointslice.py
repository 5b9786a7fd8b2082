"""EndpointSlices: the addresses behind each Service, at most a hundred per slice.

Job: decide which slices to make, change and delete so that together they say what is there.
Invariant: each endpoint is in exactly one slice of its family and ports; none has more than MOST.
Invariant: endpoints stay in the slice that they are in: a change touches as few slices as can be.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from sampan.api.errors import NotFound
from sampan.api.objects import (
    Obj,
    copy_of,
    is_deleted,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from sampan.api.resources import ENDPOINT_SLICES, NODES, PODS, SERVICES
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.conditions import is_true
from sampan.api.rules.endpoint_slices import SERVICE_NAME, services_of_slice
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import NOTHING, Action, Create, Plan, Record, Update, deletion
from sampan.controllers.controller import Caches, Controller, View, own_key
from sampan.controllers.services import topology_hints as hints
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
from sampan.controllers.workloads.pod_control import controller_reference
from sampan.core.fast_dataclass import dataclass

MOST = 100
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
_RESERVED = (SERVICE_NAME, MANAGED_BY, HEADLESS)


def endpointslice_controller() -> Controller:
    return Controller(
        name="endpointslice-controller",
        component="endpoint-slice-controller",
        aliases=("endpointslice",),
        wakes={
            SERVICES: own_key,
            PODS: services_of_pod,
            ENDPOINT_SLICES: _service_of_slice,
            NODES: _proportional_services,
        },
        planned=_plan_key,
        indices={
            SERVICES: {**OF_SERVICES, "proportional": _by_proportion},
            PODS: OF_PODS,
            NODES: {},
            ENDPOINT_SLICES: {"service": _by_service},
        },
    )


@dataclass(frozen=True, slots=True)
class Topology:
    zones: Mapping[str, str]  # node → zone
    ratios: Mapping[str, float] | None = None  # zone → its part of all processors


def plan(service: Obj, pods: Sequence[Obj], slices: Sequence[Obj], topology: Topology) -> Plan:
    """`slices`: those that we manage for this service."""
    living = [slice_ for slice_ in slices if not is_deleted(slice_)]
    if is_deleted(service) or not has_endpoints(service):
        return NOTHING  # as upstream: what it had before stays, and is its owner's now
    actions: list[Action] = []
    for family in families_of(service):
        wanted = endpoints_of(service, pods, family, topology.zones)
        mine = [item for item in living if item.get("addressType") == family]
        words = _add_hints(service, family, wanted, mine, topology)
        changes = _family_actions(service, family, wanted, mine)
        actions += [*changes, *words] if changes else []
    families = families_of(service)
    foreign = [item for item in living if item.get("addressType") not in families]
    return Plan([*actions, *(deletion(ENDPOINT_SLICES, item) for item in foreign)])


def endpoints_of(
    service: Obj, pods: Sequence[Obj], family: str, zones: Mapping[str, str]
) -> dict[tuple[Port, ...], dict[str, Obj]]:
    """Ports → pod's uid → endpoint."""
    found: dict[tuple[Port, ...], dict[str, Obj]] = {}
    publish_all, ipv6 = bool(service["spec"].get("publishNotReadyAddresses")), family == "IPv6"
    known: dict[tuple[int, int], tuple[Port, ...]] = {}  # pods of a template have one list of them
    for pod in pods:
        addresses = addresses_of(pod, ipv6=ipv6)
        if pod_facts.is_terminal(pod) or not addresses:
            continue
        spec = pod["spec"]
        containers = id(spec.get("containers")), id(spec.get("initContainers"))
        if (ports := known.get(containers)) is None:
            ports = known[containers] = ports_of(service, pod)
        endpoint = _endpoint(service, pod, addresses, publish_all, zones)
        found.setdefault(ports, {})[uid_of(pod)] = endpoint
    return found


def _add_hints(
    service: Obj,
    family: str,
    wanted: Mapping[tuple[Port, ...], Mapping[str, Obj]],
    slices: Sequence[Obj],
    topology: Topology,
) -> list[Record]:
    """Put the hints into the endpoints; what is to be told about it, if they change."""
    every = {uid: endpoint for endpoints in wanted.values() for uid, endpoint in endpoints.items()}
    if not hints.is_proportional(service):
        for item in every.values():
            if found := hints.preferred_hints(service, item):
                item["hints"] = found
        return []
    about = reference_to(service)
    try:
        zones = hints.proportional(every, topology.ratios)
    except hints.NoHints as why:
        message = f"{why}, addressType: {family}"
        return [Record(about, "Warning", "TopologyAwareHintsDisabled", message)]
    for uid, zone in zones.items():
        every[uid]["hints"] = {"forZones": [{"name": zone}]}
    if any(endpoint.get("hints") for page in slices for endpoint in page.get("endpoints") or ()):
        return []
    message = f"Topology Aware Hints has been enabled, addressType: {family}"
    return [Record(about, "Normal", "TopologyAwareHintsEnabled", message)]


@dataclass(slots=True)
class _Page:
    """A slice as it will be."""

    slice: Obj | None  # None: a new one
    endpoints: list[Obj] = field(default_factory=list)


def _family_actions(
    service: Obj,
    family: str,
    wanted: Mapping[tuple[Port, ...], Mapping[str, Obj]],
    slices: Sequence[Obj],
) -> list[Action]:
    groups: dict[tuple[Port, ...], list[Obj]] = {ports: [] for ports in wanted}
    unused: list[Obj] = []
    for slice_ in sorted(slices, key=name_of):
        ports = _ports_in(slice_)
        if ports in groups:
            groups[ports].append(slice_)
        else:
            unused.append(slice_)
    actions: list[Action] = []
    for ports, endpoints in wanted.items():
        for page in _pack(endpoints, groups[ports]):
            actions += _page_actions(service, family, ports, page)
    if not wanted:
        # A service without pods has one empty slice: "nobody" is an answer, too.
        keep = next((item for item in unused), None)
        actions += _page_actions(service, family, (), _Page(keep))
        unused = [item for item in unused if item is not keep]
    return [*actions, *(deletion(ENDPOINT_SLICES, item) for item in unused)]


def _pack(endpoints: Mapping[str, Obj], slices: Sequence[Obj]) -> list[_Page]:
    left = dict(endpoints)
    pages: list[_Page] = []
    for slice_ in slices:
        uids = [
            (entry.get("targetRef") or {}).get("uid") for entry in slice_.get("endpoints") or ()
        ]
        pages.append(_Page(slice_, [left.pop(uid) for uid in uids if uid in left]))
    # Fill the fullest first: then the others may become empty and go.
    for page in sorted(pages, key=lambda page: -len(page.endpoints)):
        if page.endpoints:
            _fill(page, left)
    for page in pages:
        _fill(page, left)
    while left:
        pages.append(_fill(_Page(None), left))
    return pages


def _fill(page: _Page, left: dict[str, Obj]) -> _Page:
    """As many of what is left as the page takes."""
    for uid in [*left][: MOST - len(page.endpoints)]:
        page.endpoints.append(left.pop(uid))
    return page


def _page_actions(service: Obj, family: str, ports: tuple[Port, ...], page: _Page) -> list[Action]:
    if page.slice is None:
        return [Create(ENDPOINT_SLICES, _new_slice(service, family, ports, page.endpoints))]
    if not page.endpoints and ports:
        return [deletion(ENDPOINT_SLICES, page.slice)]
    labels = _labels(service, page.slice)
    listed = [port.as_object() for port in ports]
    same = (
        (page.slice.get("endpoints") or []) == page.endpoints
        and (page.slice.get("ports") or []) == listed
        and labels_of(page.slice) == labels
    )
    if same:
        return []
    changed = copy_of(page.slice)
    changed["metadata"]["labels"] = labels
    changed["endpoints"], changed["ports"] = page.endpoints, listed
    return [Update(ENDPOINT_SLICES, changed, settled=(NotFound,))]


def _new_slice(service: Obj, family: str, ports: tuple[Port, ...], endpoints: Sequence[Obj]) -> Obj:
    return {
        "apiVersion": ENDPOINT_SLICES.api_version,
        "kind": ENDPOINT_SLICES.kind,
        "metadata": {
            "generateName": f"{name_of(service)}-",
            "namespace": namespace_of(service),
            "labels": _labels(service, None),
            "ownerReferences": [controller_reference(SERVICES, service)],
        },
        "addressType": family,
        "endpoints": list(endpoints),
        "ports": [port.as_object() for port in ports],
    }


def _labels(service: Obj, slice_: Obj | None) -> dict[str, str]:
    labels = {k: v for k, v in labels_of(service).items() if k not in _RESERVED}
    labels |= {SERVICE_NAME: name_of(service), MANAGED_BY: MANAGER}
    return {**labels, HEADLESS: ""} if is_headless(service) else labels


def _endpoint(
    service: Obj,
    pod: Obj,
    addresses: Sequence[str],
    publish_all: bool,
    zones: Mapping[str, str],
) -> Obj:
    serving, terminating = pod_facts.is_ready(pod), is_deleted(pod)
    endpoint: Obj = {
        "addresses": list(addresses),
        "conditions": {
            "ready": publish_all or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": target_of(pod),
    }
    if hostname := hostname_of(service, pod):
        endpoint["hostname"] = hostname
    if node := pod_facts.node_name(pod):
        endpoint["nodeName"] = node
        if zone := zones.get(node):
            endpoint["zone"] = zone
    return endpoint


def _ports_in(slice_: Obj) -> tuple[Port, ...]:
    ports = [
        Port(
            item.get("name") or "",
            int(item.get("port") or 0),
            item.get("protocol") or "TCP",
            item.get("appProtocol") or "",
        )
        for item in slice_.get("ports") or ()
    ]
    return tuple(sorted(ports, key=lambda port: (port.name, port.port, port.protocol)))


async def _plan_key(view: View, key: str) -> Plan:
    service = view.cache(SERVICES).get(key)
    if service is None:
        return NOTHING  # the garbage collector takes the slices
    pods = pods_of_service(view.cache, service)
    nodes = view.cache(NODES)
    names = {pod_facts.node_name(pod) for pod in pods}
    zones = {name: _zone(nodes.get(name)) for name in names if name}
    ratios = hints.ratios_of(list(nodes.all())) if hints.is_proportional(service) else None
    slices = view.cache(ENDPOINT_SLICES).by("service", key)
    return plan(service, pods, slices, Topology(zones, ratios))


def _zone(node: Obj | None) -> str:
    return labels_of(node or {}).get(hints.ZONE, "")


def _by_proportion(service: Obj) -> Iterable[str]:
    return ("yes",) if hints.is_proportional(service) else ()


def _proportional_services(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Wake: a node came, went, or changed in what zones are weighed by."""
    services = caches(SERVICES).by("proportional", "yes")
    if not services or (old and new and _weight(old) == _weight(new)):
        return ()
    return [key_of(service) for service in services]


def _weight(node: Obj) -> tuple[object, ...]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return labels_of(node), is_true(node, "Ready"), allocatable.get("cpu")


def _by_service(slice_: Obj) -> Iterable[str]:
    return services_of_slice(slice_) if labels_of(slice_).get(MANAGED_BY) == MANAGER else ()


def _service_of_slice(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    return {key for item in (old, new) if item is not None for key in _by_service(item)}
