"""Resource quotas: what is limited, how much, and for which pods.

Job: what must hold of a ResourceQuota.
Invariant: the scopes never change, since usage was counted by them.
"""

from sampan.api.errors import FieldError, invalid_value
from sampan.api.objects import Obj
from sampan.api.validation import names
from sampan.api.validation.fields import spec_of, status_of, validate_immutable
from sampan.api.validation.pod_spec.resources import HUGE, validate_amount
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
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def validate_quota(quota: Obj, errors: Errors) -> None:
    spec = spec_of(quota)
    _validate_amounts(spec.get("hard") or {}, "spec.hard", errors)
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(invalid_value("spec.scopes", scopes, "unsupported scope"))
    if any(one in scopes and other in scopes for one, other in _OPPOSITES):
        errors.append(invalid_value("spec.scopes", scopes, "conflicting scopes"))
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    for index, expression in enumerate(expressions):
        path = f"spec.scopeSelector.matchExpressions[{index}]"
        if expression.get("scopeName") not in _SCOPES:
            name = expression.get("scopeName") or ""
            errors.append(invalid_value(f"{path}.scopeName", name, "unsupported scope"))
        if expression.get("operator") not in ("In", "NotIn", "Exists", "DoesNotExist"):
            operator = expression.get("operator") or ""
            why = "not a valid selector operator"
            errors.append(invalid_value(f"{path}.operator", operator, why))


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
        for wrong in names.qualified_name(name):
            errors.append(invalid_value(here, name, wrong))
        standard = name in _STANDARD or name.startswith((HUGE, f"requests.{HUGE}"))
        if "/" not in name and not standard:
            why = "must be a standard resource for quota"
            errors.append(invalid_value(here, name, why))
        validate_amount(name, written, here, errors)


RULES = Rules(names.dns_subdomain, validate_quota, validate_quota_update, validate_quota_status)
