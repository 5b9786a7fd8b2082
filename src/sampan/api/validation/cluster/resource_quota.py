"""Resource quotas: what is limited, how much, and for which pods.

Job: what must hold of a ResourceQuota.
Invariant: the scopes never change, since usage was counted by them.
"""

from sampan.api.errors import FieldError, invalid_value, required_value
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.fields import validate_immutable
from sampan.api.validation.pod_spec.resources import HUGE, validate_amount, validate_resource_name
from sampan.api.validation.rules import Rules

Errors = list[FieldError]
_STANDARD = frozenset((
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage",
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets",
    "persistentvolumeclaims", "configmaps", "services.nodeports", "services.loadbalancers",
))  # fmt: skip
_SCOPES = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass",
    "CrossNamespacePodAffinity", "VolumeAttributesClass",
)  # fmt: skip
_ONLY_EXISTS = frozenset(_SCOPES[:4]) | {"CrossNamespacePodAffinity"}
_POD_RESOURCES = (
    "pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
)  # fmt: skip
_CLAIM_RESOURCES = ("persistentvolumeclaims", "requests.storage")
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def validate_quota(quota: Obj, errors: Errors) -> None:
    spec = spec_of(quota)
    _validate_amounts(spec.get("hard") or {}, "spec.hard", errors)
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(invalid_value("spec.scopes", scopes, "unsupported scope"))
        for _ in _resources_out_of_scope(scope, spec):
            why = "unsupported scope applied to resource"
            errors.append(invalid_value("spec.scopes", scopes, why))
    if any(opposite in scopes and other in scopes for opposite, other in _OPPOSITES):
        errors.append(invalid_value("spec.scopes", scopes, "conflicting scopes"))
    for expression in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        _validate_expression(expression, spec, errors)


def _resources_out_of_scope(scope: str, spec: Obj) -> list[str]:
    """The standard resources of the quota that the scope says nothing about."""
    if scope not in _SCOPES:
        return []
    if scope == "VolumeAttributesClass":
        counted: tuple[str, ...] = _CLAIM_RESOURCES
    else:
        counted = ("pods",) if scope == "BestEffort" else _POD_RESOURCES
    hard = sorted(spec.get("hard") or {})
    return [name for name in hard if name in _STANDARD and name not in counted]


def _validate_expression(expression: Obj, spec: Obj, errors: Errors) -> None:
    # Upstream names the list here, without the index.
    path = "spec.scopeSelector.matchExpressions"
    scope, operator = expression.get("scopeName") or "", expression.get("operator") or ""
    values = expression.get("values") or []
    if scope not in _SCOPES:
        errors.append(invalid_value(f"{path}.scopeName", scope, "unsupported scope"))
    for _ in _resources_out_of_scope(scope, spec):
        why = "unsupported scope applied to resource"
        errors.append(invalid_value(path, spec.get("scopeSelector"), why))
    if scope in _ONLY_EXISTS and operator != "Exists":
        why = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating,"
            " ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort,"
            " ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        errors.append(invalid_value(f"{path}.operator", operator, why))
    if operator in ("In", "NotIn"):
        if not values:
            why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.append(required_value(f"{path}.values", why))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.append(invalid_value(f"{path}.values", values, why))
    else:
        errors.append(invalid_value(f"{path}.operator", operator, "not a valid selector operator"))


def validate_quota_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_quota(new, errors)
    now, had = sorted(spec_of(new).get("scopes") or []), sorted(spec_of(old).get("scopes") or [])
    validate_immutable(now, had, "spec.scopes", errors)


def validate_quota_status(new: Obj, old: Obj, errors: Errors) -> None:
    for kind in ("hard", "used"):
        _validate_amounts(status_of(new).get(kind) or {}, f"status.{kind}", errors)


def _validate_amounts(amounts: Obj, path: str, errors: Errors) -> None:
    for name, written in amounts.items():
        here = f"{path}[{name}]"
        validate_resource_name(name, here, errors)
        standard = name in _STANDARD or name.startswith((HUGE, f"requests.{HUGE}"))
        if "/" not in name and not standard:
            why = "must be a standard resource for quota"
            errors.append(invalid_value(here, name, why))
        validate_amount(name, written, here, errors)


RULES = Rules(names.dns_subdomain, validate_quota, validate_quota_update, validate_quota_status)
