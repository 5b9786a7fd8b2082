"""Limit ranges: bounds and defaults that agree with each other.

Job: what must hold of a LimitRange.
Invariant: for each resource, min ≤ default request ≤ default ≤ max.
"""

from sampan.api.errors import FieldError, duplicate, field_forbidden, invalid_value, required_value
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.fields import validate_with
from sampan.api.validation.pod_spec.resources import (
    amount_of,
    validate_amount,
    validate_resource_name,
)
from sampan.api.validation.rules import Rules, same_rules
from sampan.core.fast_dataclass import dataclass

Errors = list[FieldError]
_KINDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


@dataclass(frozen=True, slots=True)
class _Order:
    """One amount must not be above another; which field is blamed, and which value is shown."""

    low: str
    high: str
    words: str
    field: str
    shown: str


_ORDERED = (
    _Order("min", "max", "min value {} is greater than max value {}", "min", "min"),
    _Order(
        "min", "defaultRequest", "min value {} is greater than default request value {}",
        "defaultRequest", "defaultRequest",
    ),
    _Order(
        "defaultRequest", "max", "default request value {} is greater than max value {}",
        "defaultRequest", "defaultRequest",
    ),
    _Order(
        "defaultRequest", "default",
        "default request value {} is greater than default limit value {}",
        "defaultRequest", "defaultRequest",
    ),
    _Order("min", "default", "min value {} is greater than default value {}", "default", "min"),
    _Order("default", "max", "default value {} is greater than max value {}", "default", "max"),
)  # fmt: skip


def validate_limit_range(limits: Obj, errors: Errors) -> None:
    seen: set[str] = set()
    for index, limit in enumerate(spec_of(limits).get("limits") or ()):
        path = f"spec.limits[{index}]"
        kind = limit.get("type") or ""
        if kind in ("Pod", "Container", "PersistentVolumeClaim"):
            pass
        elif "/" in kind:
            validate_with(names.qualified_name, kind, f"{path}.type", errors)
        else:
            why = "must be a standard limit type or fully qualified"
            errors.append(invalid_value(f"{path}.type", kind, why))
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        _validate_item(limit, kind, path, errors)


def _validate_item(limit: Obj, kind: str, path: str, errors: Errors) -> None:
    if kind == "Pod":
        for key in ("default", "defaultRequest"):
            if limit.get(key):
                why = "may not be specified when `type` is 'Pod'"
                errors.append(field_forbidden(f"{path}.{key}", why))
    if kind == "PersistentVolumeClaim":
        sized = any("storage" in (limit.get(key) or {}) for key in ("min", "max"))
        if not sized:
            why = "either minimum or maximum storage value is required, but neither was provided"
            errors.append(required_value(f"{path}.limits", why))
    used = {name for key in _KINDS for name in limit.get(key) or {}}
    for key in _KINDS:
        for name, written in (limit.get(key) or {}).items():
            here = f"{path}.{key}[{name}]"
            validate_resource_name(name, here, errors)
            validate_amount(name, written, here, errors)
    for name in sorted(used):
        for order in _ORDERED:
            _validate_order(limit, name, order, path, errors)


def _validate_order(limit: Obj, name: str, order: _Order, path: str, errors: Errors) -> None:
    written = {key: (limit.get(key) or {}).get(name) for key in (order.low, order.high)}
    if None in written.values():
        return
    low, high = amount_of(written[order.low] or ""), amount_of(written[order.high] or "")
    if low is not None and high is not None and high < low:
        shown = low if order.shown == order.low else high
        why = order.words.format(low, high)
        errors.append(invalid_value(f"{path}.{order.field}[{name}]", str(shown), why))


RULES = Rules(names.dns_subdomain, validate_limit_range, same_rules(validate_limit_range))
