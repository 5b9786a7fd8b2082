"""Requests and limits: names, amounts, and that a request fits its limit.

Job: the resources of a container or of a whole pod → causes.
Invariant: what cannot be overcommitted is asked for exactly as it is limited.
"""

from collections.abc import Callable, Collection

from sampan.api import quantity
from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    field_not_found,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj
from sampan.api.quantity import Quantity
from sampan.api.rules import names
from sampan.api.rules.nodes import is_extended_resource, is_native_resource
from sampan.api.validation.fields import NOT_NEGATIVE

Errors = list[FieldError]
HUGE = "hugepages-"
_CONTAINER = ("cpu", "memory", "ephemeral-storage")
_STANDARD = frozenset(_CONTAINER) | {
    "requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu",
    "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas", "services",
    "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims", "storage",
    "requests.storage", "services.nodeports", "services.loadbalancers",
}  # fmt: skip
_COUNTED = frozenset((
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
))  # fmt: skip
NameCheck = Callable[[str, str, Errors], None]


def validate_container_resources(
    resources: Obj, claims: Collection[str], path: str, errors: Errors
) -> None:
    _validate_amounts(resources, validate_container_resource, path, errors)
    used = resources.get("claims")
    if used:
        _validate_claims(used, claims, f"{path}.claims", errors)


def validate_pod_resources(
    resources: Obj, claims: Collection[str], path: str, errors: Errors
) -> None:
    if resources.get("claims") is not None:
        why = "claims may not be set for Resources at pod-level"
        errors.append(field_forbidden(f"{path}.claims", why))
    _validate_amounts(resources, _validate_pod_resource, path, errors)
    if resources.get("claims"):
        _validate_claims(resources["claims"], claims, f"{path}.claims", errors)


def validate_overhead(overhead: Obj, path: str, errors: Errors) -> None:
    _validate_amounts({"limits": overhead}, validate_container_resource, path, errors)


def validate_resource_name(name: str, path: str, errors: Errors) -> None:
    """Any resource: of nodes, of quotas."""
    wrong = names.qualified_name(name)
    for item in wrong:
        errors.append(invalid_value(path, name, item))
    if not wrong and "/" not in name and not is_standard(name):
        why = "must be a standard resource type or fully qualified"
        errors.append(invalid_value(path, name, why))


def validate_amount(name: str, written: str | int, path: str, errors: Errors) -> None:
    amount = amount_of(written)
    if amount is None:
        return
    if amount.nanos < 0:
        errors.append(invalid_value(path, str(amount), NOT_NEGATIVE))
    if is_whole(name) and amount.nanos % quantity.NANO:
        errors.append(invalid_value(path, str(amount), "must be an integer"))


def amount_of(written: str | int | float) -> Quantity | None:
    """None where the schema should have refused the text."""
    try:
        return quantity.value_of(written)
    except quantity.QuantityError:
        return None


def is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith((HUGE, f"requests.{HUGE}"))


def is_extended(name: str) -> bool:
    return is_extended_resource(name) and not names.qualified_name(f"requests.{name}")


def is_whole(name: str) -> bool:
    return name in _COUNTED or ("/" in name and is_extended(name))


def validate_container_resource(name: str, path: str, errors: Errors) -> None:
    if name in _CONTAINER:
        return
    validate_resource_name(name, path, errors)
    if "/" not in name:
        if not name.startswith(HUGE):
            why = "must be a standard resource for containers"
            errors.append(invalid_value(path, name, why))
    elif not is_native_resource(name) and not is_extended(name):
        why = "doesn't follow extended resource name standard"
        errors.append(invalid_value(path, name, why))


def _validate_pod_resource(name: str, path: str, errors: Errors) -> None:
    if name not in ("cpu", "memory") and not name.startswith(HUGE):
        validate_resource_name(name, path, errors)
        errors.append(not_supported(path, name, ("cpu", HUGE, "memory")))


def _validate_amounts(resources: Obj, check: NameCheck, path: str, errors: Errors) -> None:
    limits, requests = resources.get("limits"), resources.get("requests")
    if not limits and not requests:
        return
    limits, requests = limits or {}, requests or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, written in amounts.items():
            here = f"{path}.{kind}[{name}]"
            check(name, here, errors)
            validate_amount(name, written, here, errors)
            if name.startswith(HUGE):
                _validate_huge(name, written, here, errors)
    for name, written in requests.items():
        _validate_request(name, written, limits.get(name), path, errors)
    names_used = {*limits, *requests}
    if not names_used & {"cpu", "memory"} and any(item.startswith(HUGE) for item in names_used):
        errors.append(field_forbidden(path, "HugePages require cpu or memory"))


def may_overcommit(name: str) -> bool:
    return is_native_resource(name) and not name.startswith(HUGE)


def _validate_request(
    name: str, written: str, limit_written: str | None, path: str, errors: Errors
) -> None:
    if limit_written is None:
        if not may_overcommit(name):
            why = "Limit must be set for non overcommitable resources"
            errors.append(required_value(f"{path}.limits", why))
        return
    if written == limit_written:
        return
    amount, limit = amount_of(written), amount_of(limit_written)
    if amount is None or limit is None:
        return
    if amount != limit and not may_overcommit(name):
        why = f"must be equal to {name} limit of {limit}"
        errors.append(invalid_value(f"{path}.requests", str(amount), why))
    elif limit < amount:
        why = f"must be less than or equal to {name} limit of {limit}"
        errors.append(invalid_value(f"{path}.requests", str(amount), why))


def _validate_huge(name: str, written: str, path: str, errors: Errors) -> None:
    amount, page = amount_of(written), amount_of(name.removeprefix(HUGE))
    if amount is None:
        return
    if page is None or page.nanos <= 0 or amount.nanos % page.nanos:
        why = f"{amount} is not positive integer multiple of {name}"
        errors.append(invalid_value(path, str(amount), why))


def _validate_claims(used: list[Obj], claims: Collection[str], path: str, errors: Errors) -> None:
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(used):
        name, request = claim.get("name") or "", claim.get("request") or ""
        if not name:
            errors.append(required_value(f"{path}[{index}]"))
            continue
        if (name, request) in seen:
            shown = f"{name}/{request}" if request else name
            errors.append(duplicate(f"{path}[{index}]", shown))
        seen.add((name, request))
        if name not in claims:
            known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            missing = field_not_found(f"{path}[{index}]", name)
            why = f"{missing.message}: must be one of the names in pod.spec.resourceClaims{known}"
            errors.append(FieldError(missing.reason, missing.field, why))
