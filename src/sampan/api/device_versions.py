"""Claims and slices of devices in resource.k8s.io/v1beta1, whose fields lie elsewhere.

Job: v1beta1 → the fields of v1, and back. Pure. Other versions differ by nothing but their name.
Invariant: what v1beta1 has is unchanged after there and back.
"""

from collections.abc import Callable

from sampan.api.objects import Obj, spec_of

API_VERSION = "resource.k8s.io/v1beta1"
# Of a request for one device class, which v1 has below `exactly`.
_EXACTLY = (
    "deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations",
    "capacity", "derivedAttributes",
)  # fmt: skip


def claim_to_v1(claim: Obj) -> Obj:
    return _with_requests(claim, ("spec",), _exact_request)


def claim_from_v1(claim: Obj) -> Obj:
    return _with_requests(claim, ("spec",), _flat_request)


def template_to_v1(template: Obj) -> Obj:
    return _with_requests(template, ("spec", "spec"), _exact_request)


def template_from_v1(template: Obj) -> Obj:
    return _with_requests(template, ("spec", "spec"), _flat_request)


def slice_to_v1(piece: Obj) -> Obj:
    return _with_devices(piece, _plain_device)


def slice_from_v1(piece: Obj) -> Obj:
    return _with_devices(piece, _basic_device)


def _with_requests(obj: Obj, path: tuple[str, ...], changed: Callable[[Obj], Obj]) -> Obj:
    """A copy of what lies on the way, and of nothing else."""
    if path:
        inner = obj.get(path[0])
        if not isinstance(inner, dict):
            return obj
        return {**obj, path[0]: _with_requests(inner, path[1:], changed)}
    devices = obj.get("devices")
    if not isinstance(devices, dict) or not isinstance(devices.get("requests"), list):
        return obj
    made = [changed(item) if isinstance(item, dict) else item for item in devices["requests"]]
    return {**obj, "devices": {**devices, "requests": made}}


def _exact_request(request: Obj) -> Obj:
    exactly = {key: request[key] for key in _EXACTLY if key in request}
    # v1beta1 writes the class in any case.
    if not any(value not in (None, "") for value in exactly.values()):
        return {key: value for key, value in request.items() if key not in _EXACTLY}
    rest = {key: value for key, value in request.items() if key not in _EXACTLY}
    return {**rest, "exactly": exactly}


def _flat_request(request: Obj) -> Obj:
    rest = {key: value for key, value in request.items() if key != "exactly"}
    return {"deviceClassName": "", **rest, **(request.get("exactly") or {})}


def _with_devices(piece: Obj, changed: Callable[[Obj], Obj]) -> Obj:
    devices = spec_of(piece).get("devices")
    if not isinstance(devices, list):
        return piece
    made = [changed(item) if isinstance(item, dict) else item for item in devices]
    return {**piece, "spec": {**spec_of(piece), "devices": made}}


def _plain_device(device: Obj) -> Obj:
    rest = {key: value for key, value in device.items() if key != "basic"}
    return {**rest, **(device.get("basic") or {})}


def _basic_device(device: Obj) -> Obj:
    basic = {key: value for key, value in device.items() if key != "name"}
    return {"name": device.get("name", ""), "basic": basic}
