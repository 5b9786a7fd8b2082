"""Small kinds: service accounts, pod templates, controller revisions, addresses and their ranges.

Job: what must hold of the kinds whose rules are only a few lines.
Invariant: a controller revision's data never changes.
"""

from sampan.api.errors import FieldError, invalid_value, required_value
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.fields import (
    IMMUTABLE,
    validate_immutable,
    validate_not_negative,
    validate_with,
)
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.network.addresses import (
    address_of,
    network_of,
    validate_canonical_network,
)
from sampan.api.validation.pod_spec.pod_spec import validate_pod_template
from sampan.api.validation.rules import Rules, same_rules

Errors = list[FieldError]


def validate_template_object(template: Obj, errors: Errors) -> None:
    validate_pod_template(template.get("template") or {}, "template", errors)


def validate_revision(revision: Obj, errors: Errors) -> None:
    validate_not_negative(revision.get("revision"), "revision", errors)
    if revision.get("data") is None:
        errors.append(required_value("data", "data is mandatory"))
    elif not isinstance(revision["data"], dict):
        errors.append(required_value("data", "data must be a valid JSON object"))


def validate_revision_update(new: Obj, old: Obj, errors: Errors) -> None:
    if new.get("data") != old.get("data"):  # also of {}, which is not nothing
        errors.append(invalid_value("data", new.get("data"), IMMUTABLE))
    validate_not_negative(new.get("revision"), "revision", errors)


def validate_ip_address(address: Obj, errors: Errors) -> None:
    parent = spec_of(address).get("parentRef")
    if parent is None:
        errors.append(required_value("spec.parentRef"))
        return
    group = parent.get("group")
    if group:
        validate_with(names.dns_subdomain, group, "spec.parentRef.group", errors)
    for key in ("resource", "name", "namespace"):
        if parent.get(key):
            validate_with(names.path_segment, parent[key], f"spec.parentRef.{key}", errors)
        elif key != "namespace":
            errors.append(required_value(f"spec.parentRef.{key}"))


def validate_ip_address_update(new: Obj, old: Obj, errors: Errors) -> None:
    now, had = (
        internal_form("ParentReference", spec_of(each).get("parentRef")) for each in (new, old)
    )
    validate_immutable(now, had, "spec.parentRef", errors)


def validate_service_range(range_: Obj, errors: Errors) -> None:
    networks = spec_of(range_).get("cidrs") or []
    if not networks:
        errors.append(required_value("spec.cidrs", "at least one CIDR required"))
        return
    shown = internal_form("ServiceCIDRSpec", spec_of(range_))
    if len(networks) > 2:
        errors.append(invalid_value("spec.cidrs", shown, "may only hold up to 2 values"))
        return
    for index, text in enumerate(networks):
        validate_canonical_network(text, f"spec.cidrs[{index}]", errors)
    families = [found.version for network in networks if (found := network_of(network))]
    if len(families) == 2 and families[0] == families[1]:
        why = (
            "may specify no more than one IP for each IP family,"
            " i.e 192.168.0.0/24 and 2001:db8::/64"
        )
        errors.append(invalid_value("spec.cidrs", networks, why))


def validate_service_range_update(new: Obj, old: Obj, errors: Errors) -> None:
    """One may be added, of the other family."""
    now, had = spec_of(new).get("cidrs") or [], spec_of(old).get("cidrs") or []
    grows = len(had) == 1 and len(now) == 2
    if len(now) != len(had) and not grows:
        errors.append(invalid_value("spec.cidrs", spec_of(new).get("cidrs"), IMMUTABLE))
        return
    for index, (text, before) in enumerate(zip(now, had, strict=False)):
        validate_immutable(text, before, f"spec.cidrs[{index}]", errors)
    if grows:
        validate_service_range(new, errors)


def address_name(name: str) -> names.Complaints:
    """An IPAddress is named by its address, in its one spelling."""
    address = address_of(name)
    if address is None:
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    return () if str(address) == name else ("must be in canonical form",)


POD_TEMPLATE = Rules(
    names.dns_subdomain, validate_template_object, same_rules(validate_template_object)
)
CONTROLLER_REVISION = Rules(names.dns_subdomain, validate_revision, validate_revision_update)
IP_ADDRESS = Rules(address_name, validate_ip_address, validate_ip_address_update)
SERVICE_CIDR = Rules(names.dns_subdomain, validate_service_range, validate_service_range_update)
