"""Endpoint slices: addresses of a service's pods.

Job: what must hold of an EndpointSlice.
Invariant: all addresses of a slice are of one type, which never changes.
"""

from collections.abc import Sequence

from sampan.api.errors import FieldError, duplicate, invalid_value, required_value, too_many
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.declarative import declared
from sampan.api.validation.fields import (
    Repeats,
    validate_choice,
    validate_immutable,
    validate_optional_choice,
    validate_with,
)
from sampan.api.validation.network.addresses import (
    family_of,
    validate_address,
    validate_canonical_address,
)
from sampan.api.validation.network.service import validate_ordinary_address
from sampan.api.validation.rules import Rules

Errors = list[FieldError]
_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS, _MOST_HINTS = 1000, 100, 20000, 8


def validate_endpoint_slice(slice_: Obj, errors: Errors) -> None:
    _validate_but_endpoints(slice_, errors)
    _validate_endpoints(slice_, errors)


def _validate_but_endpoints(slice_: Obj, errors: Errors) -> None:
    validate_choice(slice_.get("addressType"), ("FQDN", "IPv4", "IPv6"), "addressType", errors)
    _validate_ports(slice_.get("ports") or [], errors)


def _validate_ports(ports: Sequence[Obj], errors: Errors) -> None:
    if len(ports) > _MOST_PORTS:
        errors.append(too_many("ports", len(ports), _MOST_PORTS))
        return
    seen: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name") or ""
        if name in seen:
            errors.append(duplicate(f"ports[{index}].name", name))
        seen.add(name)
        if name:
            validate_with(names.dns_label, name, f"ports[{index}].name", errors)
        choices = ("SCTP", "TCP", "UDP")
        protocol = port.get("protocol") or ""
        validate_optional_choice(protocol, choices, f"ports[{index}].protocol", errors)
        if port.get("appProtocol") is not None:
            application = port["appProtocol"]
            path = f"ports[{index}].appProtocol"
            validate_with(names.qualified_name, application, path, errors)


def _validate_endpoints(slice_: Obj, errors: Errors) -> None:
    endpoints = slice_.get("endpoints") or []
    if len(endpoints) > _MOST_ENDPOINTS:
        errors.append(too_many("endpoints", len(endpoints), _MOST_ENDPOINTS))
        return
    for index, endpoint in enumerate(endpoints):
        kind = slice_.get("addressType") or ""
        _validate_endpoint(endpoint, kind, f"endpoints[{index}]", errors)


def validate_endpoint_slice_update(new: Obj, old: Obj, errors: Errors) -> None:
    _validate_but_endpoints(new, errors)
    if new.get("endpoints") != old.get("endpoints"):  # what an older version took may stay
        _validate_endpoints(new, errors)
    validate_immutable(new.get("addressType"), old.get("addressType"), "addressType", errors)


def _validate_endpoint(endpoint: Obj, kind: str, path: str, errors: Errors) -> None:
    addresses = endpoint.get("addresses") or []
    if not addresses:
        why = "must contain at least 1 address"
        errors.append(declared(required_value(f"{path}.addresses", why)))
    elif len(addresses) > _MOST_ADDRESSES:
        errors.append(too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES))
    for index, address in enumerate(addresses):
        _validate_address(address, kind, f"{path}.addresses[{index}]", errors)
    if endpoint.get("nodeName") is not None:
        validate_with(names.dns_subdomain, endpoint["nodeName"], f"{path}.nodeName", errors)
    if endpoint.get("hostname") is not None:
        validate_with(names.dns_label, endpoint["hostname"], f"{path}.hostname", errors)
    _validate_hints(endpoint.get("hints") or {}, f"{path}.hints", errors)


def _validate_hints(hints: Obj, path: str, errors: Errors) -> None:
    """Too many of one sort end the look, as upstream."""
    rules = (("forZones", names.label_value), ("forNodes", names.dns_subdomain))
    for key, rule in rules:
        given = [hint.get("name") or "" for hint in hints.get(key) or ()]
        if len(given) > _MOST_HINTS:
            errors.append(too_many(f"{path}.{key}", len(given), _MOST_HINTS))
            return
        is_repeated = Repeats()
        for index, name in enumerate(given):
            here = f"{path}.{key}[{index}].name"
            if is_repeated(name):
                errors.append(duplicate(here, name))
            validate_with(rule, name, here, errors)


def _validate_full_name(name: str, path: str, errors: Errors) -> None:
    """Of a domain, from its host to its root: of several things that are wrong the first."""
    if not name:
        errors.append(required_value(path))
        return
    name = name.removesuffix(".")
    if wrong := names.dns_subdomain(name):
        errors.append(invalid_value(path, name, ",".join(wrong)))
        return
    labels = name.split(".")
    if len(labels) < 2:
        why = "should be a domain with at least two segments separated by dots"
        errors.append(invalid_value(path, name, why))
        return
    for label in labels:
        if wrong := names.dns_label(label):
            errors.append(invalid_value(path, label, ",".join(wrong)))
            return


def _validate_address(address: str, kind: str, path: str, errors: Errors) -> None:
    if kind == "FQDN":
        _validate_full_name(address, path, errors)
        return
    if kind not in ("IPv4", "IPv6"):
        return
    is_good = validate_canonical_address if kind == "IPv6" else validate_address
    if not is_good(address, path, errors):
        return
    if f"IPv{family_of(address)}" != kind:
        list_path = path.rpartition("[")[0]  # as upstream
        errors.append(invalid_value(list_path, address, f"must be an {kind} address"))
    else:
        validate_ordinary_address(address, path, errors)


RULES = Rules(names.dns_subdomain, validate_endpoint_slice, validate_endpoint_slice_update)
