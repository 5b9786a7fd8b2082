"""How a pod is named and how it finds others: hostname, DNS, host aliases, host ports.

Job: the network fields of a pod's spec → causes.
Invariant: with the host's network a container's port is the host's port.
"""

from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    required_value,
    too_long,
)
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import validate_choice, validate_with
from sampan.api.validation.network.addresses import validate_address
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SEARCH_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_SEARCH_FORM = lazy_pattern(_SEARCH)
_BAD_SEARCH = names.regex_complaint(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-'"
    " or '.', and must start and end with an alphanumeric character",
    _SEARCH, "example.com",
)  # fmt: skip


def validate_ports(ports: list[Obj], path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        name = port.get("name")
        if name:
            wrong = names.port_name(name)
            for item in wrong:
                errors.append(invalid_value(f"{here}.name", name, item))
            if not wrong and name in seen:
                errors.append(duplicate(f"{here}.name", name))
            seen.add(name)
        number = port.get("containerPort")
        if not number:
            errors.append(required_value(f"{here}.containerPort"))
        elif not 1 <= number <= 65535:
            validate_with(names.port_number, number, f"{here}.containerPort", errors)
        host_port = port.get("hostPort")
        if host_port:
            validate_with(names.port_number, host_port, f"{here}.hostPort", errors)
        if port.get("protocol") != "TCP":
            validate_choice(port.get("protocol"), _PROTOCOLS, f"{here}.protocol", errors)


def validate_host_ports(
    containers: list[tuple[int, Obj]], path: str, seen: set[str], errors: Errors
) -> None:
    for index, container in containers:
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort")
            if not host_port:
                continue
            used = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{host_port}"
            if used in seen:
                errors.append(duplicate(f"{path}[{index}].ports[{number}].hostPort", used))
            seen.add(used)


def validate_host_network(spec: Obj, path: str, errors: Errors, *, is_pod: bool) -> None:
    """A template may leave the host port to be filled in when the pod is made."""
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort") or 0
            if (is_pod or host_port) and host_port != (port.get("containerPort") or 0):
                field = f"{path}.containers[{index}].ports[{number}].hostPort"
                why = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid_value(field, host_port, why))


def validate_dns_policy(spec: Obj, path: str, errors: Errors) -> None:
    policy = spec.get("dnsPolicy")
    if policy != "ClusterFirst":
        validate_choice(policy, _DNS_POLICIES, f"{path}.dnsPolicy", errors)


def validate_dns_config(spec: Obj, path: str, errors: Errors) -> None:
    policy, config = spec.get("dnsPolicy"), spec.get("dnsConfig")
    here = f"{path}.dnsConfig"
    if policy == "None":
        if config is None:
            errors.append(required_value(here, "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not config.get("nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.append(required_value(f"{here}.nameservers", why))
            return
    if config:
        _validate_dns_config(config, here, errors)


def validate_hostnames(spec: Obj, path: str, errors: Errors) -> None:
    for key in ("hostname", "subdomain"):
        value = spec.get(key)
        if value:
            validate_with(names.dns_label, value, f"{path}.{key}", errors)
    override = spec.get("hostnameOverride")
    if override is not None:
        here = f"{path}.hostnameOverride"
        if spec.get("hostNetwork"):
            errors.append(field_forbidden(here, "may not be specified when hostNetwork is true"))
        if spec.get("setHostnameAsFQDN"):
            errors.append(
                field_forbidden(here, "may not be specified when setHostnameAsFQDN is true")
            )
        if len(override) > 64:
            errors.append(too_long(here, 64))
        validate_with(names.dns_subdomain, override, here, errors)


def validate_host_aliases(spec: Obj, path: str, errors: Errors) -> None:
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        here = f"{path}.hostAliases[{index}]"
        validate_address(alias.get("ip") or "", f"{here}.ip", errors)
        for number, hostname in enumerate(alias.get("hostnames") or ()):
            validate_with(names.dns_subdomain, hostname, f"{here}.hostnames[{number}]", errors)


def _validate_dns_config(config: Obj, path: str, errors: Errors) -> None:
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > 3:
        why = "must not have more than 3 nameservers"
        errors.append(invalid_value(f"{path}.nameservers", servers, why))
    for index, server in enumerate(servers):
        validate_address(server, f"{path}.nameservers[{index}]", errors)
    if len(searches) > 32:
        why = "must not have more than 32 search paths"
        errors.append(invalid_value(f"{path}.searches", searches, why))
    if len(" ".join(searches)) > 2048:
        why = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(invalid_value(f"{path}.searches", searches, why))
    for index, search in enumerate(searches):
        _validate_search(search, f"{path}.searches[{index}]", errors)
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required_value(f"{path}.options[{index}]", "must not be empty"))


def _validate_search(search: str, path: str, errors: Errors) -> None:
    if search == ".":
        return
    domain = search.removesuffix(".")
    if len(domain) > 253:
        errors.append(invalid_value(path, domain, names.too_many_bytes(253)))
    if not _SEARCH_FORM.fullmatch(domain):
        errors.append(invalid_value(path, domain, _BAD_SEARCH))
