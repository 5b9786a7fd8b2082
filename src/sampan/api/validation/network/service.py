"""Services: ports, type, addresses and families, affinity and traffic policies.

Job: what must hold of a Service.
Invariant: a cluster IP, once given, stays while the service has one.
"""

from collections.abc import Container, Sequence
from itertools import chain

from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.fields import (
    Repeats,
    validate_choice,
    validate_optional_choice,
    validate_port,
    validate_with,
)
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.metadata import validate_labels
from sampan.api.validation.network.addresses import address_of, validate_address, validate_network
from sampan.api.validation.network.service_names import service_name
from sampan.api.validation.rules import Rules

Errors = list[FieldError]
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_LONGEST_AFFINITY_SECONDS = 86400
_NOT_FOR_NAMES = ("clusterIPs", "ipFamilies", "ipFamilyPolicy")


def validate_service(service: Obj, errors: Errors, kept: Container[str] = ()) -> None:
    """`kept`: addresses and networks that it has had."""
    spec = spec_of(service)
    kind = spec.get("type") or ""
    headless = _is_headless(spec)
    ports = spec.get("ports") or []
    if not ports and not headless and kind != "ExternalName":
        errors.append(required_value("spec.ports"))
    _validate_type(spec, kind, headless, errors)
    for index, port in enumerate(ports):
        here = f"spec.ports[{index}]"
        _validate_port(port, len(ports) > 1, here, errors)
        if kind == "ClusterIP" and port.get("nodePort"):
            why = "may not be used when `type` is 'ClusterIP'"
            errors.append(field_forbidden(f"{here}.nodePort", why))
    _validate_ports_differ(ports, errors)
    validate_labels(spec.get("selector") or {}, "spec.selector", errors)
    _validate_affinity(spec, errors)
    _validate_families(spec, kind, errors, kept)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        if validate_address(address, f"spec.externalIPs[{index}]", errors, kept):
            validate_ordinary_address(address, f"spec.externalIPs[{index}]", errors)
    _validate_policies(spec, kind, errors, kept)


def validate_service_update(new: Obj, old: Obj, errors: Errors) -> None:
    spec, was = spec_of(new), spec_of(old)
    if "ExternalName" not in (spec.get("type"), was.get("type")):
        _validate_same_addresses(spec, was, errors)
    loaded = spec.get("type") == was.get("type") == "LoadBalancer"
    if loaded and spec.get("loadBalancerClass") != was.get("loadBalancerClass"):
        shown = spec.get("loadBalancerClass")
        errors.append(invalid_value("spec.loadBalancerClass", shown, "may not change once set"))
    checked = loaded and (
        spec.get("externalTrafficPolicy") == was.get("externalTrafficPolicy") == "Local"
    )
    if checked and spec.get("healthCheckNodePort") != was.get("healthCheckNodePort"):
        errors.append(field_forbidden("spec.healthCheckNodePort", "field is immutable"))
    validate_service(new, errors, _addresses_in(was))
    # Of a new service the allocator finds them, which comes first there.
    _validate_node_ports_differ(spec.get("ports") or (), errors)


def _addresses_in(spec: Obj) -> set[str]:
    listed = (spec.get(key) or () for key in ("externalIPs", "clusterIPs"))
    networks = (text.strip() for text in spec.get("loadBalancerSourceRanges") or ())
    return {*chain(*listed), *networks}


def _validate_same_addresses(spec: Obj, was: Obj, errors: Errors) -> None:
    """Between types that have addresses. A second one may come and go, as its family."""
    shown = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    had = was.get("clusterIPs") or ([was["clusterIP"]] if was.get("clusterIP") else [])
    for index in _changed_places(shown or [""], had):
        path = f"spec.clusterIPs[{index}]"
        errors.append(invalid_value(path, shown, "may not change once set"))
    families = spec.get("ipFamilies") or []
    if not _is_headless(spec) and families:
        for _ in _changed_places(families, was.get("ipFamilies") or []):
            errors.append(invalid_value("spec.ipFamilies[0]", families, "may not change once set"))


def _changed_places(now: list[str], before: list[str]) -> list[int]:
    """Where both have a value, and not the same."""
    pairs = enumerate(zip(now, before, strict=False))
    return [index for index, (new, old) in pairs if new != old]


def validate_service_status(new: Obj, old: Obj, errors: Errors) -> None:
    path, listed = "status.loadBalancer.ingress", _ingress_of(new)
    if listed and (new.get("spec") or {}).get("type") != "LoadBalancer":
        why = "may only be used when `spec.type` is LoadBalancer"
        errors.append(field_forbidden(path, why))
        return
    for index, ingress in enumerate(listed):
        mode, here = ingress.get("ipMode"), f"{path}[{index}].ipMode"
        if ingress.get("ip") and mode is None:
            errors.append(required_value(here, "must be specified when `ip` is set"))
        elif mode is not None and not ingress.get("ip"):
            errors.append(field_forbidden(here, "may not be specified when `ip` is not set"))
        else:
            validate_optional_choice(mode, ("Proxy", "VIP"), here, errors)
    kept = {ingress.get("ip") for ingress in _ingress_of(old)}
    validate_load_balancer({"ingress": listed}, "status.loadBalancer", errors, kept)


def _ingress_of(service: Obj) -> list[Obj]:
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    return balancer.get("ingress") or []


def validate_load_balancer(
    balancer: Obj, path: str, errors: Errors, kept: Container[str | None]
) -> None:
    """Of services and of ingresses. `kept`: addresses that it has had."""
    for index, ingress in enumerate(balancer.get("ingress") or ()):
        here = f"{path}.ingress[{index}]"
        if ingress.get("ip"):
            validate_address(ingress["ip"], f"{here}.ip", errors, kept)
        name = ingress.get("hostname")
        if name:
            validate_with(names.dns_subdomain, name, f"{here}.hostname", errors)
            if address_of(name) is not None:
                why = "must be a DNS name, not an IP address"
                errors.append(invalid_value(f"{here}.hostname", name, why))


def validate_ordinary_address(text: str, path: str, errors: Errors) -> None:
    """Not one of those that mean the machine itself or its own wire."""
    address = address_of(text)
    if address is None:
        return
    if address.is_unspecified:
        why = f"may not be unspecified ({address})"
        errors.append(invalid_value(path, text, why))
    if address.is_loopback:
        why = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
        errors.append(invalid_value(path, text, why))
    if address.is_link_local:
        why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        errors.append(invalid_value(path, text, why))
    if text.startswith(("224.0.0.", "ff02:")):
        why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid_value(path, text, why))


def is_reachable_from_outside(spec: Obj) -> bool:
    kind = spec.get("type")
    return kind in ("NodePort", "LoadBalancer") or (
        kind == "ClusterIP" and bool(spec.get("externalIPs"))
    )


def _is_headless(spec: Obj) -> bool:
    return spec.get("clusterIP") == "None" or (spec.get("clusterIPs") or [""])[0] == "None"


def _validate_type(spec: Obj, kind: str, headless: bool, errors: Errors) -> None:
    validate_choice(kind, _TYPES, "spec.type", errors)
    if headless and kind in ("LoadBalancer", "NodePort"):
        why = f"may not be set to 'None' for {kind} services"
        errors.append(invalid_value("spec.clusterIPs[0]", "None", why))
    if kind != "ExternalName":
        return
    for key in _NOT_FOR_NAMES:
        if spec.get(key) or (key == "ipFamilyPolicy" and spec.get(key) is not None):
            why = "may not be set for ExternalName services"
            errors.append(field_forbidden(f"spec.{key}", why))
    name = (spec.get("externalName") or "").removesuffix(".")
    if name:
        validate_with(names.dns_subdomain, name, "spec.externalName", errors)
    else:
        errors.append(required_value("spec.externalName"))


def _validate_port(port: Obj, needs_name: bool, path: str, errors: Errors) -> None:
    name = port.get("name") or ""
    if name:
        validate_with(names.dns_label, name, f"{path}.name", errors)
    elif needs_name:
        errors.append(required_value(f"{path}.name"))
    validate_with(names.port_number, port.get("port") or 0, f"{path}.port", errors)
    validate_choice(port.get("protocol"), _PROTOCOLS, f"{path}.protocol", errors)
    validate_port(port.get("targetPort"), f"{path}.targetPort", errors)
    if port.get("appProtocol") is not None:
        validate_with(names.qualified_name, port["appProtocol"], f"{path}.appProtocol", errors)


def _validate_node_ports_differ(ports: Sequence[Obj], errors: Errors) -> None:
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol") or "", port.get("nodePort") or 0)
        if key[1] and key in seen:
            errors.append(duplicate(f"spec.ports[{index}].nodePort", key[1]))
        seen.add(key)


def _validate_ports_differ(ports: Sequence[Obj], errors: Errors) -> None:
    seen_names: set[str] = set()
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        here = f"spec.ports[{index}]"
        name, protocol = port.get("name") or "", port.get("protocol") or ""
        if name and name in seen_names:
            errors.append(duplicate(f"{here}.name", name))
        seen_names.add(name)
        key = (protocol, port.get("port") or 0)
        if key in seen:
            shown = internal_form("ServicePort", {"protocol": protocol, "port": key[1]})
            errors.append(duplicate(here, shown))
        seen.add(key)


def _validate_affinity(spec: Obj, errors: Errors) -> None:
    affinity, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    validate_choice(affinity, ("ClientIP", "None"), "spec.sessionAffinity", errors)
    path = "spec.sessionAffinityConfig"
    if affinity == "None" and config is not None:
        why = "must not be set when session affinity is None"
        errors.append(field_forbidden(path, why))
    if affinity != "ClientIP":
        return
    why = "when session affinity type is ClientIP"
    for step in ("", ".clientIP", ".clientIP.timeoutSeconds"):
        value = config
        for key in step.split(".")[1:]:
            value = (value or {}).get(key)
        if value is None:
            errors.append(required_value(f"{path}{step}", why))
            return
    seconds = (config or {})["clientIP"]["timeoutSeconds"]
    if not 0 < seconds <= _LONGEST_AFFINITY_SECONDS:
        why = f"must be greater than 0 and less than {_LONGEST_AFFINITY_SECONDS}"
        errors.append(invalid_value(f"{path}.clientIP.timeoutSeconds", seconds, why))


def validate_families(service: Obj) -> Errors:
    """Addresses and families, which upstream looks at before it looks at anything else."""
    errors: Errors = []
    _validate_families(spec_of(service), spec_of(service).get("type") or "", errors, kept=())
    return errors


def _validate_families(spec: Obj, kind: str, errors: Errors, kept: Container[str]) -> None:
    if kind == "ExternalName":
        return
    families, addresses = spec.get("ipFamilies") or [], spec.get("clusterIPs") or []
    single = spec.get("clusterIP")
    if addresses and single and addresses[0] != single:
        why = "first value must match `clusterIP`"
        errors.append(invalid_value("spec.clusterIPs", addresses, why))
    elif addresses and not single:
        why = "must be empty when `clusterIP` is not specified"
        errors.append(invalid_value("spec.clusterIPs", addresses, why))
    is_repeated = Repeats()
    for index, family in enumerate(families):
        validate_optional_choice(family, ("IPv4", "IPv6"), f"spec.ipFamilies[{index}]", errors)
        if is_repeated(family):
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
    policies = ("PreferDualStack", "RequireDualStack", "SingleStack")
    validate_optional_choice(spec.get("ipFamilyPolicy"), policies, "spec.ipFamilyPolicy", errors)
    _validate_cluster_ips(addresses or ([single] if single else []), families, errors, kept)


def _validate_at_most_two(values: list[str], path: str, errors: Errors) -> None:
    if len(values) > 2:
        errors.append(invalid_value(path, values, "may only hold up to 2 values"))


def _validate_cluster_ips(
    addresses: list[str], families: list[str], errors: Errors, kept: Container[str]
) -> None:
    path, before = "spec.clusterIPs", len(errors)
    for index, address in enumerate(addresses):
        if address == "None" and index == 0:
            if len(addresses) > 1:
                why = "'None' must be the first and only value"
                errors.append(invalid_value(path, addresses, why))
        else:
            validate_address(address, f"{path}[{index}]", errors, kept)
    _validate_at_most_two(addresses, path, errors)
    if len(errors) == before and addresses[:1] != ["None"]:
        _validate_versions(addresses, families, errors)


def _validate_versions(addresses: list[str], families: list[str], errors: Errors) -> None:
    """One of each family, in the order that ipFamilies says."""
    versions = [f"IPv{found.version}" for found in map(address_of, addresses) if found is not None]
    if len(set(versions)) < len(versions):
        why = "may specify no more than one IP for each IP family"
        errors.append(invalid_value("spec.clusterIPs", addresses, why))
    for index, (version, family) in enumerate(zip(versions, families, strict=False)):
        if version != family:
            why = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid_value(f"spec.clusterIPs[{index}]", addresses[index], why))


def _validate_load_balancer(spec: Obj, kind: str, errors: Errors) -> None:
    name = spec.get("loadBalancerClass")
    if kind == "LoadBalancer":
        if name is not None:
            validate_with(names.qualified_name, name, "spec.loadBalancerClass", errors)
        return
    for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if spec.get(key) is not None:
            why = "may only be used when `type` is 'LoadBalancer'"
            errors.append(field_forbidden(f"spec.{key}", why))


def _validate_policies(spec: Obj, kind: str, errors: Errors, kept: Container[str]) -> None:
    inside, outside = spec.get("internalTrafficPolicy"), spec.get("externalTrafficPolicy")
    if inside is None and kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        errors.append(required_value("spec.internalTrafficPolicy"))
    validate_optional_choice(inside, ("Cluster", "Local"), "spec.internalTrafficPolicy", errors)
    reachable = is_reachable_from_outside(spec)
    if outside:
        if not reachable:
            why = "may only be set for externally-accessible services"
            errors.append(invalid_value("spec.externalTrafficPolicy", outside, why))
        elif outside not in ("Cluster", "Local"):
            path = "spec.externalTrafficPolicy"
            errors.append(not_supported(path, outside, ("Cluster", "Local")))
    elif reachable:
        errors.append(required_value("spec.externalTrafficPolicy"))
    if spec.get("healthCheckNodePort") and not (kind == "LoadBalancer" and outside == "Local"):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        port = spec["healthCheckNodePort"]
        errors.append(invalid_value("spec.healthCheckNodePort", port, why))
    _validate_load_balancer(spec, kind, errors)
    for index, source in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        validate_network(source.strip(), f"spec.LoadBalancerSourceRanges[{index}]", errors, kept)
    validate_optional_choice(
        spec.get("trafficDistribution"),
        ("PreferClose", "PreferSameZone", "PreferSameNode"),
        "spec.trafficDistribution",
        errors,
    )


RULES = Rules(service_name, validate_service, validate_service_update, validate_service_status)
