"""EndpointSlice mirroring: slices for Endpoints of Services without a selector.

Job: for a Service without a selector, say in slices what its Endpoints say.
Invariant: a slice that we manage says what the Endpoints say now, or it is deleted.
"""

import ipaddress
from collections.abc import Iterable, Sequence

from sampan.api.errors import NotFound
from sampan.api.objects import (
    Obj,
    annotations_of,
    copy_of,
    is_deleted,
    labels_of,
    name_of,
    namespace_of,
)
from sampan.api.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from sampan.api.rules.endpoint_slices import SERVICE_NAME, services_of_slice
from sampan.controllers.actions import NOTHING, Action, Create, Plan, Update, deletion
from sampan.controllers.controller import Caches, Controller, View, own_key
from sampan.controllers.services.endpointslice import MANAGED_BY
from sampan.controllers.workloads.pod_control import controller_reference

MANAGER = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
MOST_PER_SUBSET = 1000
_NOT_MIRRORED = frozenset({
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
})  # fmt: skip


def endpointslice_mirroring_controller() -> Controller:
    return Controller(
        name="endpointslice-mirroring-controller",
        component="endpoint-slice-mirroring-controller",
        aliases=("endpointslicemirroring",),
        wakes={ENDPOINTS: own_key, SERVICES: own_key, ENDPOINT_SLICES: _service_of_slice},
        planned=_plan_key,
        indices={ENDPOINT_SLICES: {"mirrored": _by_service}},
    )


def plan(endpoints: Obj | None, service: Obj | None, slices: Sequence[Obj]) -> Plan:
    """`slices`: those that we made for Endpoints of this name."""
    living = [slice_ for slice_ in slices if not is_deleted(slice_)]
    if endpoints is None or service is None or not is_mirrored(endpoints, service):
        return Plan([deletion(ENDPOINT_SLICES, item) for item in living])
    wanted = mirrored_slices(endpoints)
    actions: list[Action] = []
    for item in wanted:
        # The same kind and ports first: then only the endpoints differ.
        found = next((old for old in living if _place(old) == _place(item)), None)
        if found is None:
            actions.append(Create(ENDPOINT_SLICES, item))
            continue
        living.remove(found)
        if not _says_the_same(found, item):
            changed = copy_of(found)
            changed["metadata"]["labels"] = item["metadata"]["labels"]
            changed["metadata"]["annotations"] = item["metadata"]["annotations"]
            changed["endpoints"] = item["endpoints"]
            actions.append(Update(ENDPOINT_SLICES, changed, settled=(NotFound,)))
    return Plan([*actions, *(deletion(ENDPOINT_SLICES, item) for item in living)])


def is_mirrored(endpoints: Obj, service: Obj) -> bool:
    if labels_of(endpoints).get(SKIP) == "true" or LEADER in annotations_of(endpoints):
        return False
    return not (service.get("spec") or {}).get("selector") and not is_deleted(endpoints)


def mirrored_slices(endpoints: Obj) -> list[Obj]:
    slices = []
    for subset in endpoints.get("subsets") or ():
        ports = subset.get("ports") or []
        entries = [(item, True) for item in subset.get("addresses") or ()]
        entries += [(item, False) for item in subset.get("notReadyAddresses") or ()]
        for family in ("IPv4", "IPv6"):
            found = [
                _endpoint(address, ready)
                for address, ready in entries[:MOST_PER_SUBSET]
                if _family(address.get("ip", "")) == family
            ]
            if found:
                slices.append(_slice(endpoints, family, ports, found))
    return slices


def _endpoint(address: Obj, ready: bool) -> Obj:
    endpoint: Obj = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
    for field in ("hostname", "nodeName", "targetRef"):
        if address.get(field):
            endpoint[field] = address[field]
    return endpoint


def _slice(endpoints: Obj, family: str, ports: Sequence[Obj], found: Sequence[Obj]) -> Obj:
    labels = {**labels_of(endpoints), SERVICE_NAME: name_of(endpoints), MANAGED_BY: MANAGER}
    kept = {k: v for k, v in annotations_of(endpoints).items() if k not in _NOT_MIRRORED}
    return {
        "apiVersion": ENDPOINT_SLICES.api_version,
        "kind": ENDPOINT_SLICES.kind,
        "metadata": {
            "generateName": f"{name_of(endpoints)}-",
            "namespace": namespace_of(endpoints),
            "labels": labels,
            "annotations": kept,
            "ownerReferences": [controller_reference(ENDPOINTS, endpoints)],
        },
        "addressType": family,
        "endpoints": list(found),
        "ports": [{"name": "", "protocol": "TCP", **port} for port in ports],
    }


def _place(slice_: Obj) -> tuple[object, ...]:
    ports = [
        (port.get("name") or "", port.get("port"), port.get("protocol") or "TCP")
        for port in slice_.get("ports") or ()
    ]
    return slice_.get("addressType"), tuple(ports)


def _says_the_same(have: Obj, want: Obj) -> bool:
    return (
        (have.get("endpoints") or []) == want["endpoints"]
        and labels_of(have) == labels_of(want)
        and annotations_of(have) == annotations_of(want)
    )


def _family(address: str) -> str:
    try:
        return f"IPv{ipaddress.ip_address(address).version}"
    except ValueError:
        return ""


async def _plan_key(view: View, key: str) -> Plan:
    slices = view.cache(ENDPOINT_SLICES).by("mirrored", key)
    endpoints, service = view.cache(ENDPOINTS).get(key), view.cache(SERVICES).get(key)
    if endpoints is None and not slices:
        return NOTHING
    return plan(endpoints, service, slices)


def _by_service(slice_: Obj) -> Iterable[str]:
    return services_of_slice(slice_) if labels_of(slice_).get(MANAGED_BY) == MANAGER else ()


def _service_of_slice(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    return {key for item in (old, new) if item is not None for key in _by_service(item)}
