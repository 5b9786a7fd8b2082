"""Endpoints: addresses of a service's pods, in the old form.

Job: what must hold of an Endpoints object.
Invariant: no address means the node itself.
"""

from sampan.api.errors import FieldError, invalid_value, required_value
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import validate_choice, validate_with
from sampan.api.validation.network.addresses import address_of, validate_address
from sampan.api.validation.network.service import validate_ordinary_address
from sampan.api.validation.rules import Rules, same_rules

Errors = list[FieldError]


def validate_endpoints(endpoints: Obj, errors: Errors) -> None:
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{index}]"
        ready, not_ready = subset.get("addresses") or [], subset.get("notReadyAddresses") or []
        if not ready and not not_ready:
            errors.append(required_value(path, "must specify `addresses` or `notReadyAddresses`"))
        for kind, addresses in (("addresses", ready), ("notReadyAddresses", not_ready)):
            for number, address in enumerate(addresses):
                _validate_address(address, f"{path}.{kind}[{number}]", errors)
        ports = subset.get("ports") or []
        for number, port in enumerate(ports):
            _validate_port(port, len(ports) > 1, f"{path}.ports[{number}]", errors)


def _validate_address(address: Obj, path: str, errors: Errors) -> None:
    ip = address.get("ip") or ""
    validate_address(ip, f"{path}.ip", errors)
    if address_of(ip) is None:  # said twice, as upstream
        errors.append(invalid_value(f"{path}.ip", ip, "must be a valid IP address"))
    validate_ordinary_address(ip, f"{path}.ip", errors)
    if address.get("hostname"):
        validate_with(names.dns_label, address["hostname"], f"{path}.hostname", errors)
    if address.get("nodeName") is not None:
        validate_with(names.dns_subdomain, address["nodeName"], f"{path}.nodeName", errors)


def _validate_port(port: Obj, needs_name: bool, path: str, errors: Errors) -> None:
    name = port.get("name")
    if name:
        validate_with(names.dns_label, name, f"{path}.name", errors)
    elif needs_name:
        errors.append(required_value(f"{path}.name"))
    validate_with(names.port_number, port.get("port") or 0, f"{path}.port", errors)
    validate_choice(port.get("protocol"), ("SCTP", "TCP", "UDP"), f"{path}.protocol", errors)
    if port.get("appProtocol") is not None:
        validate_with(names.qualified_name, port["appProtocol"], f"{path}.appProtocol", errors)


RULES = Rules(names.dns_subdomain, validate_endpoints, same_rules(validate_endpoints))
