"""API services: which server answers for a group and version.

Job: what must hold of an APIService.
Invariant: its name is its version and its group.
"""

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, meta_of, name_of, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.fields import validate_with
from sampan.api.validation.rules import Rules, same_rules

Errors = list[FieldError]


def validate_api_service(service: Obj, errors: Errors) -> None:
    spec = spec_of(service)
    group, version = spec.get("group") or "", spec.get("version") or ""
    expected = f"{version}.{group}"
    for key in ("generateName", "name"):
        name = meta_of(service).get(key) or ""
        if name and name not in (expected, f"{version}."):
            why = f'must be `spec.version+"."+spec.group`: "{expected}"'
            errors.append(invalid_value(f"metadata.{key}", name, why))
    if group:
        validate_with(names.dns_subdomain, group, "spec.group", errors)
    elif version != "v1":
        why = "only v1 may have an empty group and it better be legacy kube"
        errors.append(required_value("spec.group", why))
    validate_with(names.dns_1035_label, version, "spec.version", errors)
    for key, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(key) or 0
        if not 0 < value <= most:
            why = f"must be positive and less than {most}"
            errors.append(invalid_value(f"spec.{key}", value, why))
    _validate_target(spec, errors)
    if name_of(service) == "v1." and spec.get("service") is not None:
        # Not as upstream, where the whole cluster would speak to somebody else from then on.
        why = "the core group is served by this server"
        errors.append(field_forbidden("spec.service", why))


def _validate_target(spec: Obj, errors: Errors) -> None:
    target = spec.get("service")
    if target is None:
        if spec.get("caBundle"):
            why = "local APIServices may not have a caBundle"
            errors.append(invalid_value("spec.caBundle", f"{_size(spec['caBundle'])} bytes", why))
        if spec.get("insecureSkipTLSVerify"):
            why = "local APIServices may not have insecureSkipTLSVerify"
            errors.append(invalid_value("spec.insecureSkipTLSVerify", True, why))
        return
    for key in ("namespace", "name"):
        if not target.get(key):
            errors.append(required_value(f"spec.service.{key}"))
    port = target.get("port")
    if port is not None:
        for wrong in names.port_number(port):
            why = f"port is not valid: {wrong}"
            errors.append(invalid_value("spec.service.port", port, why))
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        why = "may not be true if caBundle is present"
        errors.append(invalid_value("spec.insecureSkipTLSVerify", True, why))


def _size(bundle: str) -> int:
    """Of what the text stands for."""
    return len(bundle.rstrip("=")) * 3 // 4


def validate_api_service_status(new: Obj, old: Obj, errors: Errors) -> None:
    for index, condition in enumerate(status_of(new).get("conditions") or ()):
        status, known = condition.get("status") or "", ("True", "False", "Unknown")
        if status not in known:
            errors.append(not_supported(f"status.conditions[{index}].status", status, known))


RULES = Rules(
    names.any_name,
    validate_api_service,
    same_rules(validate_api_service),
    validate_api_service_status,
)
