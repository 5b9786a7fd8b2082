"""Limit ranges: bounds and defaults that agree with each other.

Job: what must hold of a LimitRange.
Invariant: for each resource, min ≤ default request ≤ default ≤ max.
"""

from sampan.api import quantity
from sampan.api.errors import FieldError, duplicate, field_forbidden, invalid_value, required_value
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.pod_spec.resources import (
    amount_of,
    may_overcommit,
    validate_container_resource,
    validate_resource_name,
)
from sampan.api.validation.rules import Rules, same_rules
from sampan.core.fast_dataclass import dataclass

Errors = list[FieldError]
_TYPES = ("Container", "Pod", "PersistentVolumeClaim")
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
        wrong = names.qualified_name(kind)
        errors += [invalid_value(f"{path}.type", kind, why) for why in wrong]
        if not wrong and "/" not in kind and kind not in _TYPES:
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
    # What a pod may not have by default is not looked at any further.
    kinds = [key for key in _KINDS if kind != "Pod" or not key.startswith("default")]
    check = validate_container_resource if kind in _TYPES[:2] else validate_resource_name
    for key in kinds:
        for name in limit.get(key) or {}:
            check(name, f"{path}.{key}[{name}]", errors)
    limit = {key: limit.get(key) for key in kinds}
    for name in sorted({name for key in kinds for name in limit.get(key) or {}}):
        _validate_ratio(limit, name, path, errors)
        _validate_equal(limit, name, path, errors)
        for order in _ORDERED:
            _validate_order(limit, name, order, path, errors)


def _validate_equal(limit: Obj, name: str, path: str, errors: Errors) -> None:
    """What is had whole or not at all is asked for as it is limited."""
    both = [(limit.get(key) or {}).get(name) for key in ("default", "defaultRequest")]
    if may_overcommit(name) or None in both:
        return
    most, asked = (amount_of(each or "") for each in both)
    if most is not None and asked is not None and most != asked:
        why = f"default value {most} must equal to defaultRequest value {asked} in {name}"
        errors.append(invalid_value(f"{path}.defaultRequest[{name}]", str(asked), why))


def _validate_ratio(limit: Obj, name: str, path: str, errors: Errors) -> None:
    written = {
        key: (limit.get(key) or {}).get(name) for key in ("maxLimitRequestRatio", "min", "max")
    }
    ratio, low, high = (None if each is None else amount_of(each) for each in written.values())
    if ratio is None:
        return
    here = f"{path}.maxLimitRequestRatio[{name}]"
    if ratio.nanos < quantity.NANO:
        errors.append(invalid_value(here, str(ratio), f"ratio {ratio} is less than 1"))
    if low is None or high is None or not low.nanos:
        return
    most = high.nanos / low.nanos
    if ratio.nanos / quantity.NANO > most:
        why = f"ratio {ratio} is greater than max/min = {most:f}"
        errors.append(invalid_value(here, str(ratio), why))


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
