"""APIService availability: Service, endpoints and port that must be there. Pure.

Job: an APIService, its Service and that one's endpoint slices → the condition that says why not.
What remains is asked of the server itself (aggregation/checks.py).
"""

from collections.abc import Iterable

from sampan.api.objects import Obj, spec_of
from sampan.api.rules.endpoint_slices import ready_endpoints

PASSED: Obj = {
    "type": "Available",
    "status": "True",
    "reason": "Passed",
    "message": "all checks passed",
}
DEFAULT_PORT = 443


def port_of(reference: Obj) -> int:
    return int(reference.get("port") or DEFAULT_PORT)


def unavailable(reason: str, why: str) -> Obj:
    return {"type": "Available", "status": "False", "reason": reason, "message": why}


def missing_backend(reference: Obj, service: Obj | None, slices: Iterable[Obj]) -> Obj | None:
    """`reference`: the APIService's spec.service; `slices`: those of the service. None: there is
    somebody to ask."""
    where = f'service/{reference.get("name")} in "{reference.get("namespace")}"'
    if service is None:
        return unavailable("ServiceNotFound", f"{where} is not present")
    spec = spec_of(service)
    if (spec.get("type") or "ClusterIP") != "ClusterIP":
        return None
    number = port_of(reference)
    port = next((item for item in spec.get("ports") or () if item.get("port") == number), None)
    if port is None:
        return unavailable("ServicePortError", f"{where} is not listening on port {number}")
    found = list(slices)
    if not found:
        return unavailable("EndpointsNotFound", f"cannot find endpointslices for {where}")
    name = port.get("name") or ""
    if not any(_has_endpoint(part, name) for part in found):
        why = f'endpointslices for {where} have no addresses with port name "{name}"'
        return unavailable("MissingEndpoints", why)
    return None


def _has_endpoint(part: Obj, port_name: str) -> bool:
    ports = part.get("ports") or ()
    ready = next(ready_endpoints(part), None)
    return ready is not None and any(
        (port.get("name") or "") == port_name and port.get("port") for port in ports
    )
