"""A ResourceClaim's status: what was allocated, for whom it is reserved, what its devices say.

Job: what must hold of such a status, and of its change.
Invariant: an allocation is made and taken away as a whole, never changed.
"""

import ipaddress

from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    required_value,
    too_long,
    too_many,
)
from sampan.api.objects import Obj, is_deleted, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.conditions import validate_common_conditions
from sampan.api.validation.fields import IMMUTABLE, Repeats, validate_choice, validate_with
from sampan.api.validation.pod_spec.volumes import validate_csi_driver
from sampan.api.validation.selectors import validate_node_selector
from sampan.api.validation.storage.device_names import (
    names_of_requests,
    validate_pool_name,
    validate_raw,
    validate_request_reference,
)
from sampan.api.validation.storage.device_taints import validate_device_tolerations

Errors = list[FieldError]
_MOST_RESERVATIONS, _MOST_RESULTS, _MOST_CONFIGURATIONS = 256, 32, 64
_MOST_CONDITIONS, _MOST_ADDRESSES, _MOST_NAME_BYTES, _MOST_HARDWARE_BYTES = 8, 16, 256, 128


def validate_claim_status(new: Obj, old: Obj, errors: Errors) -> None:
    status, was = status_of(new), status_of(old)
    allocation, before = status.get("allocation"), was.get("allocation")
    _validate_reservations(new, old, errors)
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    _validate_devices(status.get("devices") or [], {_id_of(item) for item in results}, errors)
    if allocation is not None and before is not None:
        if allocation != before:
            errors.append(invalid_value("status.allocation", allocation, IMMUTABLE))
    elif allocation is not None:
        requests = names_of_requests(spec_of(new).get("devices") or {})
        _validate_allocation(allocation.get("devices") or {}, requests, errors)
        where = allocation.get("nodeSelector")
        if where is not None:
            validate_node_selector(where, "status.allocation.nodeSelector", errors)


def _validate_reservations(new: Obj, old: Obj, errors: Errors) -> None:
    status, path = status_of(new), "status.reservedFor"
    reserved = status.get("reservedFor") or []
    if len(reserved) > _MOST_RESERVATIONS:
        errors.append(too_many(path, len(reserved), _MOST_RESERVATIONS))
    seen: set[str] = set()
    for index, consumer in enumerate(reserved):
        for key in ("resource", "name", "uid"):
            if not consumer.get(key):
                errors.append(required_value(f"{path}[{index}].{key}"))
        if consumer.get("uid") in seen:
            errors.append(duplicate(f"{path}[{index}]", consumer["uid"]))
        seen.add(consumer.get("uid") or "")
    if reserved and status.get("allocation") is None:
        why = "may not be specified when `allocated` is not set"
        errors.append(field_forbidden(path, why))
    elif is_deleted(new):
        known = status_of(old).get("reservedFor") or []
        if any(consumer not in known for consumer in reserved):
            why = (
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp`"
                " are set"
            )
            errors.append(field_forbidden(path, why))


def _validate_allocation(devices: Obj, requests: set[str], errors: Errors) -> None:
    path, results = "status.allocation.devices", devices.get("results") or []
    if len(results) > _MOST_RESULTS:
        errors.append(too_many(f"{path}.results", len(results), _MOST_RESULTS))
    for index, result in enumerate(results):
        here = f"{path}.results[{index}]"
        validate_request_reference(result.get("request") or "", f"{here}.request", requests, errors)
        _validate_device_name(result, here, errors)
        tolerations = result.get("tolerations") or []
        validate_device_tolerations(tolerations, f"{here}.tolerations", errors)
    configurations = devices.get("config") or []
    if len(configurations) > _MOST_CONFIGURATIONS:
        errors.append(too_many(f"{path}.config", len(configurations), _MOST_CONFIGURATIONS))
    for index, config in enumerate(configurations):
        here = f"{path}.config[{index}]"
        sources = ("FromClaim", "FromClass")
        validate_choice(config.get("source"), sources, f"{here}.source", errors)
        for at, name in enumerate(config.get("requests") or ()):
            validate_request_reference(name, f"{here}.requests[{at}]", requests, errors)
        if config.get("opaque") is None:
            errors.append(required_value(f"{here}.opaque"))


def _validate_devices(devices: list[Obj], allocated: set[str], errors: Errors) -> None:
    seen: set[str] = set()
    for index, device in enumerate(devices):
        here = f"status.devices[{index}]"
        _validate_device_name(device, here, errors)
        identity = _id_of(device)
        if identity not in allocated:
            errors.append(invalid_value(here, identity, "must be an allocated device in the claim"))
        if identity in seen:
            errors.append(duplicate(here, identity))
        seen.add(identity)
        conditions = device.get("conditions") or []
        if len(conditions) > _MOST_CONDITIONS:
            errors.append(too_many(f"{here}.conditions", len(conditions), _MOST_CONDITIONS))
        validate_common_conditions(conditions, f"{here}.conditions", errors)
        if device.get("data") is not None:
            validate_raw(device["data"], f"{here}.data", errors)
        _validate_network(device.get("networkData") or {}, f"{here}.networkData", errors)


def _validate_network(network: Obj, path: str, errors: Errors) -> None:
    for key, most in (
        ("interfaceName", _MOST_NAME_BYTES),
        ("hardwareAddress", _MOST_HARDWARE_BYTES),
    ):
        if len((network.get(key) or "").encode()) > most:
            errors.append(too_long(f"{path}.{key}", most))
    addresses = network.get("ips") or []
    if len(addresses) > _MOST_ADDRESSES:
        errors.append(too_many(f"{path}.ips", len(addresses), _MOST_ADDRESSES))
    is_repeated = Repeats()
    for index, text in enumerate(addresses):
        if not _is_interface_address(text):
            why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
            errors.append(invalid_value(f"{path}.ips[{index}]", text, why))
        if is_repeated(text):
            errors.append(duplicate(f"{path}.ips[{index}]", text))


def _is_interface_address(text: str) -> bool:
    try:
        return "/" in text and bool(ipaddress.ip_interface(text))
    except ValueError:
        return False


def _validate_device_name(device: Obj, path: str, errors: Errors) -> None:
    validate_csi_driver(device.get("driver") or "", f"{path}.driver", errors)
    validate_pool_name(device.get("pool") or "", f"{path}.pool", errors)
    name = device.get("device") or ""
    if not name:
        errors.append(required_value(f"{path}.device"))
    else:
        validate_with(names.dns_label, name, f"{path}.device", errors)


def _id_of(device: Obj) -> str:
    parts = [device.get(key) or "" for key in ("driver", "pool", "device")]
    return "/".join(parts + ([device["shareID"]] if device.get("shareID") else []))
