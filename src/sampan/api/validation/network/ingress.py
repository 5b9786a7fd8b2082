"""Ingresses and their classes: hosts, paths, backends.

Job: what must hold of an Ingress and of an IngressClass.
Invariant: an ingress leads somewhere: it has rules or a default backend.
"""

from collections.abc import Callable, Iterator, Sequence

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
    too_long,
)
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.declarative import declared
from sampan.api.validation.fields import (
    validate_immutable,
    validate_prefixed_path,
    validate_with,
)
from sampan.api.validation.network.addresses import address_of
from sampan.api.validation.network.service import validate_load_balancer
from sampan.api.validation.network.service_names import name_rule
from sampan.api.validation.rules import Rules

Errors = list[FieldError]
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")


def validate_ingress(ingress: Obj, errors: Errors) -> None:
    _validate_ingress(ingress, name_rule(()), errors)
    _validate_secrets(ingress, errors)


def validate_ingress_update(new: Obj, old: Obj, errors: Errors) -> None:
    _validate_ingress(new, name_rule(_service_names(old)), errors)
    if not any(_wrong_secret(tls) for tls in spec_of(old).get("tls") or ()):
        _validate_secrets(new, errors)


def _validate_secrets(ingress: Obj, errors: Errors) -> None:
    """Where none was wrong before: those that are there may stay."""
    for index, tls in enumerate(spec_of(ingress).get("tls") or ()):
        path = f"spec.tls[{index}].secretName"
        errors += [invalid_value(path, tls["secretName"], why) for why in _wrong_secret(tls)]


def _wrong_secret(tls: Obj) -> Sequence[str]:
    name = tls.get("secretName")
    return names.dns_subdomain(name) if name else ()


def _service_names(ingress: Obj) -> Iterator[str]:
    spec = spec_of(ingress)
    paths = ((rule.get("http") or {}).get("paths") or () for rule in spec.get("rules") or ())
    backends = [path.get("backend") for each in paths for path in each]
    for backend in (spec.get("defaultBackend"), *backends):
        name = ((backend or {}).get("service") or {}).get("name")
        if name:
            yield name


def _validate_ingress(ingress: Obj, name: names.NameRule, errors: Errors) -> None:
    spec = spec_of(ingress)
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and backend is None:
        why = "either `defaultBackend` or `rules` must be specified"
        errors.append(invalid_value("spec", spec.get("rules"), why))
    if backend is not None:
        _validate_backend(backend, "spec.defaultBackend", name, errors)
    for index, rule in enumerate(rules):
        _validate_rule(rule, f"spec.rules[{index}]", name, errors)
    for index, tls in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(tls.get("hosts") or ()):
            rule_ = names.wildcard_subdomain if "*" in host else names.dns_subdomain
            validate_with(rule_, host, f"spec.tls[{index}].hosts[{number}]", errors)
    if spec.get("ingressClassName") is not None:
        path = "spec.ingressClassName"
        validate_with(names.dns_subdomain, spec["ingressClassName"], path, errors)


def validate_ingress_status(new: Obj, old: Obj, errors: Errors) -> None:
    balancer = status_of(new).get("loadBalancer") or {}
    had = (status_of(old).get("loadBalancer") or {}).get("ingress") or ()
    kept = {ingress.get("ip") for ingress in had}
    validate_load_balancer(balancer, "status.loadBalancer", errors, kept)


def validate_ingress_class(ingress_class: Obj, errors: Errors) -> None:
    spec = spec_of(ingress_class)
    controller = spec.get("controller") or ""
    if len(controller) > 250:
        errors.append(too_long("spec.controller", 250))
    validate_prefixed_path(controller, "spec.controller", errors)
    parameters = spec.get("parameters")
    if parameters is None:
        return
    _validate_typed_reference(parameters, "spec.parameters", _declared_missing, errors)
    scope, path = parameters.get("scope"), "spec.parameters.scope"
    if scope is None:
        errors.append(required_value(path))
    elif scope not in ("Cluster", "Namespace"):
        errors.append(not_supported(path, scope, ("Cluster", "Namespace")))
    else:
        _validate_scoped_namespace(scope, parameters.get("namespace"), errors)


def _validate_scoped_namespace(scope: str, namespace: str | None, errors: Errors) -> None:
    path, why = "spec.parameters.namespace", f"`parameters.scope` is set to '{scope}'"
    if scope == "Cluster":
        if namespace is not None:
            errors.append(field_forbidden(path, why))
    elif namespace is None:
        errors.append(required_value(path, why))
    else:
        validate_with(names.dns_label, namespace, path, errors)


def validate_ingress_class_update(new: Obj, old: Obj, errors: Errors) -> None:
    now, had = spec_of(new).get("controller"), spec_of(old).get("controller")
    validate_immutable(now or "", had, "spec.controller", errors)
    validate_ingress_class(new, errors)


def _validate_rule(rule: Obj, path: str, name: names.NameRule, errors: Errors) -> None:
    host = rule.get("host") or ""
    if host:
        if address_of(host) is not None:
            why = "must be a DNS name, not an IP address"
            errors.append(invalid_value(f"{path}.host", host, why))
        rule_ = names.wildcard_subdomain if "*" in host else names.dns_subdomain
        validate_with(rule_, host, f"{path}.host", errors)
    http = rule.get("http")
    if http is None:
        return
    paths = http.get("paths") or []
    if not paths:
        errors.append(required_value(f"{path}.http.paths"))
    for index, item in enumerate(paths):
        here = f"{path}.http.paths[{index}]"
        if not _validate_path(item, here, errors):
            continue
        _validate_backend(item.get("backend") or {}, f"{here}.backend", name, errors)


def _validate_path(one: Obj, path: str, errors: Errors) -> bool:
    """Whether the rest of it is looked at."""
    if one.get("pathType") is None:
        errors.append(required_value(f"{path}.pathType", "pathType must be specified"))
        return False
    _validate_typed_path(one["pathType"], one.get("path") or "", path, errors)
    return True


def _validate_typed_path(kind: str, target: str, path: str, errors: Errors) -> None:
    if kind not in _PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
        return
    if kind == "ImplementationSpecific":
        if target and not target.startswith("/"):
            errors.append(invalid_value(f"{path}.path", target, "must be an absolute path"))
        return
    if not target.startswith("/"):
        errors.append(invalid_value(f"{path}.path", target, "must be an absolute path"))
    for part in _BAD_PARTS:
        if part in target:
            errors.append(invalid_value(f"{path}.path", target, f"must not contain '{part}'"))
    for end in _BAD_ENDS:
        if target.endswith(end):
            errors.append(invalid_value(f"{path}.path", target, f"cannot end with '{end}'"))


def _validate_backend(backend: Obj, path: str, name: names.NameRule, errors: Errors) -> None:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        why = "cannot set both resource and service backends"
        errors.append(invalid_value(path, "", why))
    elif resource is not None:
        _validate_typed_reference(resource, f"{path}.resource", required_value, errors)
    elif service is not None:
        _validate_service(service, f"{path}.service", name, errors)
    else:
        errors.append(invalid_value(path, "", "resource or service backend is required"))


def _declared_missing(path: str) -> FieldError:
    return declared(required_value(path))


def _validate_typed_reference(
    reference: Obj, path: str, missing: Callable[[str], FieldError], errors: Errors
) -> None:
    if reference.get("apiGroup") is not None:
        validate_with(names.dns_subdomain, reference["apiGroup"], f"{path}.apiGroup", errors)
    for key in ("kind", "name"):
        if not reference.get(key):
            errors.append(missing(f"{path}.{key}"))
        else:
            validate_with(names.path_segment, reference[key], f"{path}.{key}", errors)


def _validate_service(service: Obj, path: str, rule: names.NameRule, errors: Errors) -> None:
    name = service.get("name") or ""
    if not name:
        errors.append(required_value(f"{path}.name"))
    else:
        validate_with(rule, name, f"{path}.name", errors)
    port = service.get("port") or {}
    port_name, number = port.get("name") or "", port.get("number") or 0
    if port_name and number:
        why = "cannot set both port name & port number"
        errors.append(invalid_value(path.rpartition(".")[0], "", why))
    elif port_name:
        validate_with(names.port_name, port_name, f"{path}.port.name", errors)
    elif number:
        validate_with(names.port_number, number, f"{path}.port.number", errors)
    else:
        errors.append(required_value(path.rpartition(".")[0], "port name or number is required"))


INGRESS = Rules(
    names.dns_subdomain, validate_ingress, validate_ingress_update, validate_ingress_status
)
INGRESS_CLASS = Rules(names.dns_subdomain, validate_ingress_class, validate_ingress_class_update)
