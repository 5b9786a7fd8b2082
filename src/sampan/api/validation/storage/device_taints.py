"""Taints of devices, tolerations of claims, and DeviceTaintRules.

Job: what must hold of them.
Invariant: an effect that is stored already is not refused.
"""

from sampan.api.errors import (
    FieldError,
    invalid_value,
    not_supported,
    required_value,
    too_many,
)
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.conditions import validate_common_conditions
from sampan.api.validation.declarative import declared
from sampan.api.validation.fields import validate_with
from sampan.api.validation.pod_spec.volumes import validate_csi_driver
from sampan.api.validation.rules import Rules
from sampan.api.validation.storage.device_names import validate_pool_name

Errors = list[FieldError]
EFFECTS = ("NoExecute", "NoSchedule", "None")
_OPERATORS = ("Equal", "Exists")
_MOST_TAINTS = _MOST_TOLERATIONS = 16
_MOST_CONDITIONS = 8


def validate_device_taints(taints: list[Obj], path: str, errors: Errors) -> None:
    if len(taints) > _MOST_TAINTS:
        errors.append(too_many(path, len(taints), _MOST_TAINTS))
    for index, taint in enumerate(taints):
        _validate_taint(taint or {}, None, f"{path}[{index}]", errors)


def validate_device_tolerations(tolerations: list[Obj], path: str, errors: Errors) -> None:
    for index, toleration in enumerate(tolerations):
        _validate_toleration(toleration or {}, f"{path}[{index}]", errors)


def _validate_taint(taint: Obj, before: Obj | None, path: str, errors: Errors) -> None:
    validate_with(names.label_key, taint.get("key") or "", f"{path}.key", errors)
    if taint.get("value"):
        validate_with(names.label_value, taint["value"], f"{path}.value", errors)
    effect = taint.get("effect") or ""
    if before is not None and (before.get("effect") or "") == effect:
        return
    if not effect:
        errors.append(required_value(f"{path}.effect"))
    elif effect not in EFFECTS:
        errors.append(declared(not_supported(f"{path}.effect", effect, EFFECTS)))


def _validate_toleration(toleration: Obj, path: str, errors: Errors) -> None:
    if toleration.get("key"):
        validate_with(names.label_key, toleration["key"], f"{path}.key", errors)
    operator, value = toleration.get("operator") or "", toleration.get("value") or ""
    if operator == "Exists" and value:
        why = "must be empty for operator `Exists`"
        errors.append(invalid_value(f"{path}.value", value, why))
    elif operator == "Equal":
        validate_with(names.label_value, value, f"{path}.value", errors)
    elif operator not in _OPERATORS:
        errors.append(declared(not_supported(f"{path}.operator", operator, _OPERATORS)))
    effect = toleration.get("effect") or ""
    if effect and effect not in EFFECTS:
        errors.append(declared(not_supported(f"{path}.effect", effect, EFFECTS)))


def validate_taint_rule(rule: Obj, errors: Errors) -> None:
    _validate_spec(spec_of(rule), None, errors)


def validate_taint_rule_update(new: Obj, old: Obj, errors: Errors) -> None:
    _validate_spec(spec_of(new), spec_of(old), errors)


def _validate_spec(spec: Obj, before: Obj | None, errors: Errors) -> None:
    selector, path = spec.get("deviceSelector") or {}, "spec.deviceSelector"
    if selector.get("driver") is not None:
        validate_csi_driver(selector["driver"], f"{path}.driver", errors)
    if selector.get("pool") is not None:
        validate_pool_name(selector["pool"], f"{path}.pool", errors)
    if selector.get("device") is not None:
        validate_with(names.dns_label, selector["device"], f"{path}.device", errors)
    had = None if before is None else before.get("taint") or {}
    _validate_taint(spec.get("taint") or {}, had, "spec.taint", errors)


def validate_taint_rule_status(new: Obj, old: Obj, errors: Errors) -> None:
    conditions, path = status_of(new).get("conditions") or [], "status.conditions"
    validate_common_conditions(conditions, path, errors)
    if len(conditions) > _MOST_CONDITIONS:
        errors.append(too_many(path, len(conditions), _MOST_CONDITIONS))


RULES = Rules(
    names.dns_subdomain, validate_taint_rule, validate_taint_rule_update, validate_taint_rule_status
)
