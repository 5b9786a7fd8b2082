"""Devices that pods claim: device classes, claims, templates of claims.

Job: what must hold of the kinds of resource.k8s.io.
Invariant: what a claim asks for never changes.
"""

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
    too_long,
    too_many,
)
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.declarative import declared, declared_immutable
from sampan.api.validation.fields import validate_immutable, validate_with
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.metadata import validate_annotations, validate_labels
from sampan.api.validation.pod_spec.volumes import validate_csi_driver
from sampan.api.validation.rules import Rules, same_rules
from sampan.api.validation.storage.device_claim_status import validate_claim_status
from sampan.api.validation.storage.device_names import (
    MOST_REQUESTS,
    names_of_requests,
    validate_fully_qualified,
    validate_raw,
    validate_request_references,
)
from sampan.api.validation.storage.device_taints import validate_device_tolerations
from sampan.api.validation.storage.resource_slice import place_of_duplicate, validate_once

Errors = list[FieldError]
_MOST_SELECTORS = _MOST_CONSTRAINTS = _MOST_CONFIGURATIONS = 32
_MOST_ALTERNATIVES = 8
_MOST_EXPRESSION_BYTES = 10 * 1024
_GO_KEYS = {"uid": "uID"}


def validate_device_class(device_class: Obj, errors: Errors) -> None:
    spec = spec_of(device_class)
    _validate_selectors(spec, "spec", errors)
    _validate_configurations(spec, "spec", None, errors)


def validate_claim(claim: Obj, errors: Errors) -> None:
    _validate_devices(spec_of(claim).get("devices") or {}, "spec.devices", errors)


def validate_claim_update(new: Obj, old: Obj, errors: Errors) -> None:
    now, had = (internal_form("ResourceClaimSpec", spec_of(each)) for each in (new, old))
    if now != had:
        errors.append(declared_immutable("spec", now))


def validate_claim_template(template: Obj, errors: Errors) -> None:
    spec = spec_of(template)
    _validate_template_metadata(spec.get("metadata") or {}, "spec.metadata", errors)
    inner = (spec.get("spec") or {}).get("devices") or {}
    _validate_devices(inner, "spec.spec.devices", errors)


def validate_claim_template_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_claim_template(new, errors)
    now, had = (internal_form("ResourceClaimTemplateSpec", spec_of(each)) for each in (new, old))
    validate_immutable(now, had, "spec", errors)


def _validate_template_metadata(meta: Obj, path: str, errors: Errors) -> None:
    validate_annotations(meta.get("annotations") or {}, f"{path}.annotations", errors)
    validate_labels(meta.get("labels") or {}, f"{path}.labels", errors)
    for key, value in meta.items():
        if key not in ("annotations", "labels") and value not in (None, "", 0):
            errors.append(field_forbidden(f"{path}.{_GO_KEYS.get(key, key)}", "cannot be set"))


def _validate_devices(devices: Obj, path: str, errors: Errors) -> None:
    requests = devices.get("requests") or []
    if len(requests) > MOST_REQUESTS:
        errors.append(too_many(f"{path}.requests", len(requests), MOST_REQUESTS))
    else:
        for index, request in enumerate(requests):
            _validate_request(request, f"{path}.requests[{index}]", errors)
        _validate_once(requests, f"{path}.requests", errors)
    known, constraints = names_of_requests(devices), devices.get("constraints") or []
    if len(constraints) > _MOST_CONSTRAINTS:
        errors.append(too_many(f"{path}.constraints", len(constraints), _MOST_CONSTRAINTS))
    else:
        for index, constraint in enumerate(constraints):
            _validate_constraint(constraint or {}, f"{path}.constraints[{index}]", known, errors)
    _validate_configurations(devices, path, known, errors)


def _validate_once(requests: list[Obj], path: str, errors: Errors) -> None:
    if not features.changed("DeclarativeErrors"):
        validate_once(requests, path, errors)
        return
    seen: set[str] = set()
    for index, request in enumerate(requests):
        name = request.get("name") or ""
        if name in seen:
            shown = {"name": name, **request}
            errors.append(duplicate(place_of_duplicate(f"{path}[{index}]"), shown))
        seen.add(name)


def _validate_request(request: Obj, path: str, errors: Errors) -> None:
    validate_with(names.dns_label, request.get("name") or "", f"{path}.name", errors)
    exactly, first = request.get("exactly"), request.get("firstAvailable")
    why = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not first:
        errors.append(required_value(path, why))
    elif exactly is not None and first:
        errors.append(invalid_value(path, None, f"{why}, but multiple fields are set"))
    elif exactly is not None:
        _validate_exact(exactly, f"{path}.exactly", errors)
    elif first and len(first) > _MOST_ALTERNATIVES:
        errors.append(too_many(f"{path}.firstAvailable", len(first), _MOST_ALTERNATIVES))
    elif first:
        for index, sub in enumerate(first):
            here = f"{path}.firstAvailable[{index}]"
            validate_with(names.dns_label, sub.get("name") or "", f"{here}.name", errors)
            _validate_exact(sub, here, errors)
        validate_once(first, f"{path}.firstAvailable", errors)


def _validate_constraint(constraint: Obj, path: str, known: set[str], errors: Errors) -> None:
    named = constraint.get("requests") or []
    validate_request_references(named, f"{path}.requests", known, errors)
    attribute = constraint.get("matchAttribute")
    if attribute is None:
        errors.append(required_value(f"{path}.matchAttribute"))
    else:
        validate_fully_qualified(attribute, f"{path}.matchAttribute", errors)


def _validate_configurations(owner: Obj, path: str, known: set[str] | None, errors: Errors) -> None:
    """`known`: the requests that a configuration may be for, where there are any."""
    given = owner.get("config") or []
    if len(given) > _MOST_CONFIGURATIONS:
        errors.append(too_many(f"{path}.config", len(given), _MOST_CONFIGURATIONS))
        return
    for index, config in enumerate(given):
        here = f"{path}.config[{index}]"
        if known is not None:
            named = config.get("requests") or []
            validate_request_references(named, f"{here}.requests", known, errors)
        opaque = config.get("opaque")
        if opaque is None:
            errors.append(required_value(f"{here}.opaque"))
        else:
            validate_csi_driver(opaque.get("driver") or "", f"{here}.opaque.driver", errors)
            validate_raw(opaque.get("parameters"), f"{here}.opaque.parameters", errors)


def _validate_exact(exactly: Obj, path: str, errors: Errors) -> None:
    name = exactly.get("deviceClassName") or ""
    if not name:
        errors.append(required_value(f"{path}.deviceClassName"))
    else:
        validate_with(names.dns_subdomain, name, f"{path}.deviceClassName", errors)
    _validate_selectors(exactly, path, errors)
    mode, count = exactly.get("allocationMode") or "", exactly.get("count") or 0
    if mode == "All" and count:
        why = "must not be specified when allocationMode is 'All'"
        errors.append(invalid_value(f"{path}.count", count, why))
    elif mode == "ExactCount" and count <= 0:
        errors.append(invalid_value(f"{path}.count", count, "must be greater than zero"))
    elif mode not in ("All", "ExactCount"):
        wrong = not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount"))
        errors.append(declared(wrong))
    validate_device_tolerations(exactly.get("tolerations") or [], f"{path}.tolerations", errors)


def _validate_selectors(obj: Obj, path: str, errors: Errors) -> None:
    selectors = obj.get("selectors") or []
    if len(selectors) > _MOST_SELECTORS:
        errors.append(too_many(f"{path}.selectors", len(selectors), _MOST_SELECTORS))
        return
    for index, selector in enumerate(selectors):
        cel, where = selector.get("cel"), f"{path}.selectors[{index}].cel"
        expression = (cel or {}).get("expression") or ""
        if cel is None:
            errors.append(required_value(where))
        elif len(expression.encode()) > _MOST_EXPRESSION_BYTES:
            errors.append(too_long(f"{where}.expression", _MOST_EXPRESSION_BYTES))
        else:
            _validate_expression(expression, f"{where}.expression", errors)


def _validate_expression(expression: str, path: str, errors: Errors) -> None:
    # Few clusters have devices: the language is loaded with the first selector.
    from sampan.api.cel.devices import trouble_of

    trouble = trouble_of(expression)
    if trouble:
        errors.append(invalid_value(path, expression, trouble))


DEVICE_CLASS = Rules(names.dns_subdomain, validate_device_class, same_rules(validate_device_class))
CLAIM = Rules(names.dns_subdomain, validate_claim, validate_claim_update, validate_claim_status)
CLAIM_TEMPLATE = Rules(names.dns_subdomain, validate_claim_template, validate_claim_template_update)
