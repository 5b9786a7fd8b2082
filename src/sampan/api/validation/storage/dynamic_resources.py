"""Devices that pods claim: device classes, claims, templates of claims, slices.

Job: what must hold of the kinds of resource.k8s.io.
Invariant: what a claim asks for never changes.
"""

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    required_value,
    too_long,
    too_many,
)
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.declarative import declared
from sampan.api.validation.fields import validate_choice, validate_immutable, validate_with
from sampan.api.validation.pod_spec.volumes import validate_csi_driver
from sampan.api.validation.rules import Rules, same_rules
from sampan.api.validation.storage.device_claim_status import validate_claim_status

Errors = list[FieldError]
_MOST_REQUESTS = _MOST_SELECTORS = 32
_MOST_EXPRESSION_BYTES = 10 * 1024


def validate_device_class(device_class: Obj, errors: Errors) -> None:
    _validate_selectors(spec_of(device_class), "spec", errors)


def validate_claim(claim: Obj, errors: Errors) -> None:
    _validate_devices(spec_of(claim).get("devices") or {}, "spec.devices", errors)


def validate_claim_template(template: Obj, errors: Errors) -> None:
    inner = (spec_of(template).get("spec") or {}).get("devices") or {}
    _validate_devices(inner, "spec.spec.devices", errors)


def validate_slice(slice_: Obj, errors: Errors) -> None:
    _validate_slice(spec_of(slice_), None, errors)


def validate_slice_update(new: Obj, old: Obj, errors: Errors) -> None:
    """Whose devices they are, and where, does not change."""
    _validate_slice(spec_of(new), spec_of(old), errors)


def _validate_slice(spec: Obj, before: Obj | None, errors: Errors) -> None:
    validate_csi_driver(spec.get("driver") or "", "spec.driver", errors)
    pool = spec.get("pool") or {}
    if not pool.get("name"):
        errors.append(required_value("spec.pool.name"))
    if before is not None:
        had = (before.get("pool") or {}).get("name")
        validate_immutable(pool.get("name"), had, "spec.pool.name", errors)
        for key in ("driver", "nodeName"):
            validate_immutable(spec.get(key), before.get(key), f"spec.{key}", errors)
    given = [
        key
        for key in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
        if spec.get(key)
    ]
    if len(given) != 1:
        why = (
            "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is"
            " required"
        )
        errors.append(
            required_value("spec", why) if not given else invalid_value("spec", given, why)
        )
    seen: set[str] = set()
    for index, device in enumerate(spec.get("devices") or ()):
        name = device.get("name") or ""
        validate_with(names.dns_label, name, f"spec.devices[{index}].name", errors)
        if name in seen:
            errors.append(duplicate(_place_of_duplicate(f"spec.devices[{index}]"), name))
        seen.add(name)


def validate_same_spec(new: Obj, old: Obj, errors: Errors) -> None:
    if spec_of(new) != spec_of(old):
        errors.append(invalid_value("spec", spec_of(new), "field is immutable"))


def _validate_devices(devices: Obj, path: str, errors: Errors) -> None:
    requests = devices.get("requests") or []
    if len(requests) > _MOST_REQUESTS:
        errors.append(too_many(f"{path}.requests", len(requests), _MOST_REQUESTS))
    seen: set[str] = set()
    for index, request in enumerate(requests):
        here = f"{path}.requests[{index}]"
        name = request.get("name") or ""
        validate_with(names.dns_label, name, f"{here}.name", errors)
        exactly, first = request.get("exactly"), request.get("firstAvailable")
        if exactly is None and not first:
            why = "exactly one of `exactly` or `firstAvailable` is required"
            errors.append(required_value(here, why))
        elif exactly is not None and first:
            why = (
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are"
                " set"
            )
            errors.append(invalid_value(here, None, why))
        elif exactly is not None:
            _validate_exact(exactly, f"{here}.exactly", errors)
        if name in seen:
            shown = {"name": name, **request} if features.changed("DeclarativeErrors") else name
            errors.append(duplicate(_place_of_duplicate(here), shown))
        seen.add(name)


def _place_of_duplicate(path: str) -> str:
    return path if features.changed("DuplicatesByItem") else f"{path}.name"


def _validate_exact(exactly: Obj, path: str, errors: Errors) -> None:
    name = exactly.get("deviceClassName") or ""
    if not name:
        errors.append(required_value(f"{path}.deviceClassName"))
    else:
        validate_with(names.dns_subdomain, name, f"{path}.deviceClassName", errors)
    _validate_selectors(exactly, path, errors)
    mode = exactly.get("allocationMode")
    if mode is not None:
        choices = ("All", "ExactCount")
        found: list[FieldError] = []
        validate_choice(mode, choices, f"{path}.allocationMode", found)
        errors += map(declared, found)


def _validate_selectors(obj: Obj, path: str, errors: Errors) -> None:
    selectors = obj.get("selectors") or []
    if len(selectors) > _MOST_SELECTORS:
        errors.append(too_many(f"{path}.selectors", len(selectors), _MOST_SELECTORS))
    for index, selector in enumerate(selectors):
        expression = (selector.get("cel") or {}).get("expression")
        where = f"{path}.selectors[{index}].cel"
        if not expression:
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
CLAIM = Rules(names.dns_subdomain, validate_claim, validate_same_spec, validate_claim_status)
CLAIM_TEMPLATE = Rules(names.dns_subdomain, validate_claim_template, validate_same_spec)
SLICE = Rules(names.dns_subdomain, validate_slice, validate_slice_update)
