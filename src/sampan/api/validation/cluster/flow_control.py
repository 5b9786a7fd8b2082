"""Flow schemas and priority levels.

Job: what must hold of the kinds of flowcontrol.apiserver.k8s.io.
Invariant: the exempt level is always exempt, every other one always limited.
"""

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, name_of, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.conditions import validate_condition_types
from sampan.api.validation.fields import validate_choice
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.rules import Rules, same_rules

Errors = list[FieldError]
_METHODS = ("ByNamespace", "ByUser")
_LOWEST_PRECEDENCE = 10000


def validate_flow_schema(schema: Obj, errors: Errors) -> None:
    spec = spec_of(schema)
    precedence = spec.get("matchingPrecedence") or 0
    if precedence < 1:
        why = "must be a positive value"
        errors.append(invalid_value("spec.matchingPrecedence", precedence, why))
    elif precedence > _LOWEST_PRECEDENCE:
        why = f"must not be greater than {_LOWEST_PRECEDENCE}"
        errors.append(invalid_value("spec.matchingPrecedence", precedence, why))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name") or ""
    if not level:
        why = "must reference a priority level"
        errors.append(required_value("spec.priorityLevelConfiguration.name", why))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        shown = internal_form("FlowDistinguisherMethod", method)
        errors.append(not_supported("spec.distinguisherMethod.type", shown, _METHODS))
    for index, rule in enumerate(spec.get("rules") or ()):
        _validate_rule(rule, f"spec.rules[{index}]", errors)


def validate_priority_level(level: Obj, errors: Errors) -> None:
    spec = spec_of(level)
    kind = spec.get("type") or ""
    if name_of(level) == "exempt" and kind != "Exempt":
        why = "must be 'Exempt' if and only if `name` is 'exempt'"
        errors.append(invalid_value("spec.type", kind, why))
    limited, exempt = spec.get("limited"), spec.get("exempt")
    if kind == "Limited":
        if exempt is not None:
            errors.append(field_forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            errors.append(required_value("spec.limited", "must not be empty when type is Limited"))
        else:
            _validate_limited(limited, errors)
    elif kind == "Exempt":
        if limited is not None:
            errors.append(field_forbidden("spec.limited", "must be nil if the type is not Limited"))
    else:
        errors.append(not_supported("spec.type", kind, ("Exempt", "Limited")))
    if name_of(level) == "exempt" and (kind != "Exempt" or limited is not None):
        why = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
        shown = internal_form("PriorityLevelConfigurationSpec", spec)
        errors.append(invalid_value("spec", shown, why))


def _validate_rule(rule: Obj, path: str, errors: Errors) -> None:
    if not rule.get("subjects"):
        errors.append(
            required_value(f"{path}.subjects", "subjects must contain at least one value")
        )
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        why = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(required_value(path, why))
    for index, subject in enumerate(rule.get("subjects") or ()):
        kinds = ("Group", "ServiceAccount", "User")
        validate_choice(subject.get("kind"), kinds, f"{path}.subjects[{index}].kind", errors)


def _validate_limited(limited: Obj, errors: Errors) -> None:
    path = "spec.limited"
    shares = limited.get("nominalConcurrencyShares")
    if shares is not None and shares < 0:
        why = "must be a non-negative integer"
        errors.append(invalid_value(f"{path}.nominalConcurrencyShares", shares, why))
    response = limited.get("limitResponse") or {}
    kind, queuing = response.get("type") or "", response.get("queuing")
    here = f"{path}.limitResponse"
    if kind == "Reject":
        if queuing is not None:
            why = "must be nil if limited.limitResponse.type is not Limited"
            errors.append(field_forbidden(f"{here}.queuing", why))
    elif kind == "Queue":
        if queuing is None:
            why = "must not be empty if limited.limitResponse.type is Limited"
            errors.append(required_value(f"{here}.queuing", why))
        else:
            for key in ("queueLengthLimit", "queues", "handSize"):
                value = queuing.get(key) or 0
                if value <= 0:
                    why = "must be positive"
                    errors.append(invalid_value(f"{here}.queuing.{key}", value, why))
    else:
        errors.append(not_supported(f"{here}.type", kind, ("Queue", "Reject")))


def validate_flow_status(new: Obj, old: Obj, errors: Errors) -> None:
    """Of both kinds."""
    validate_condition_types(status_of(new).get("conditions"), "status.conditions", errors)


FLOW_SCHEMA = Rules(
    names.dns_subdomain,
    validate_flow_schema,
    same_rules(validate_flow_schema),
    validate_flow_status,
)
PRIORITY_LEVEL = Rules(
    names.dns_subdomain,
    validate_priority_level,
    same_rules(validate_priority_level),
    validate_flow_status,
)
