"""Flow schemas and priority levels.

Job: what must hold of the kinds of flowcontrol.apiserver.k8s.io.
Invariant: the exempt level is always exempt, every other one always limited.
"""

import functools

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
from sampan.api.validation.declarative import declared
from sampan.api.validation.fields import validate_choice, validate_with
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.rules import Rules, same_rules
from sampan.core.files.packaged_data import packaged_data

Errors = list[FieldError]
_METHODS = ("ByNamespace", "ByUser")
_LOWEST_PRECEDENCE = 10000
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_FORBIDDEN_BESIDE = {
    "Group": ("ServiceAccount", "User"),
    "ServiceAccount": ("User", "Group"),
    "User": ("ServiceAccount", "Group"),
}
_VERBS = frozenset({
    "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch",
})  # fmt: skip


@functools.cache
def _fixed(kind: str) -> dict[str, Obj]:
    """What `exempt` and `catch-all` say in every cluster, and nobody may change."""
    specs = packaged_data("flow_control")[kind]
    return {name: specs[name] for name in ("exempt", "catch-all")}


def validate_flow_schema(schema: Obj, errors: Errors) -> None:
    spec = spec_of(schema)
    precedence = spec.get("matchingPrecedence") or 0
    why = ""
    if precedence < 1:
        why = "must be a positive value"
    elif precedence > _LOWEST_PRECEDENCE:
        why = f"must not be greater than {_LOWEST_PRECEDENCE}"
    elif precedence == 1 and name_of(schema) != "exempt":
        why = "only the schema named 'exempt' may have matchingPrecedence 1"
    if why:
        errors.append(invalid_value("spec.matchingPrecedence", precedence, why))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name") or ""
    if not level:
        why = "must reference a priority level"
        errors.append(required_value("spec.priorityLevelConfiguration.name", why))
    else:
        validate_with(names.dns_subdomain, level, "spec.priorityLevelConfiguration.name", errors)
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        shown = internal_form("FlowDistinguisherMethod", method)
        errors.append(not_supported("spec.distinguisherMethod.type", shown, _METHODS))
    for index, rule in enumerate(spec.get("rules") or ()):
        _validate_rule(rule, f"spec.rules[{index}]", errors)
    fixed = _fixed("flowSchemas").get(name_of(schema))
    if fixed is not None and spec != fixed:
        why = f"spec of '{name_of(schema)}' must equal the fixed value"
        errors.append(invalid_value("spec", internal_form("FlowSchemaSpec", spec), why))


def validate_priority_level(level: Obj, errors: Errors) -> None:
    spec = spec_of(level)
    kind = spec.get("type") or ""
    if name_of(level) == "exempt" and kind != "Exempt":
        why = "must be 'Exempt' if and only if `name` is 'exempt'"
        errors.append(invalid_value("spec.type", kind, why))
    limited, exempt = spec.get("limited"), spec.get("exempt")
    if kind == "Limited":
        if exempt is not None:
            why = "must be nil if the type is Limited"
            errors.append(declared(field_forbidden("spec.exempt", why)))
        if limited is None:
            why = "must not be empty when type is Limited"
            errors.append(declared(required_value("spec.limited", why)))
        else:
            _validate_limited(limited, errors)
    elif kind == "Exempt":
        if limited is not None:
            why = "must be nil if the type is not Limited"
            errors.append(declared(field_forbidden("spec.limited", why)))
    else:
        errors.append(not_supported("spec.type", kind, ("Exempt", "Limited")))
    if name_of(level) == "exempt" and (kind != "Exempt" or limited is not None):
        why = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
        shown = internal_form("PriorityLevelConfigurationSpec", spec)
        errors.append(invalid_value("spec", shown, why))
    if name_of(level) == "catch-all" and spec != _fixed("priorityLevels")["catch-all"]:
        why = "spec of 'catch-all' must equal the fixed value"
        shown = internal_form("PriorityLevelConfigurationSpec", spec)
        errors.append(invalid_value("spec", shown, why))


def _validate_rule(rule: Obj, path: str, errors: Errors) -> None:
    if not rule.get("subjects"):
        errors.append(
            required_value(f"{path}.subjects", "subjects must contain at least one value")
        )
    for index, subject in enumerate(rule.get("subjects") or ()):
        _validate_subject(subject, f"{path}.subjects[{index}]", errors)
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        why = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(required_value(path, why))
    for index, resources in enumerate(rule.get("resourceRules") or ()):
        _validate_resource_rule(resources, f"{path}.resourceRules[{index}]", errors)
    for index, urls in enumerate(rule.get("nonResourceRules") or ()):
        _validate_url_rule(urls, f"{path}.nonResourceRules[{index}]", errors)


def _validate_subject(subject: Obj, path: str, errors: Errors) -> None:
    kind = subject.get("kind") or ""
    if kind not in _SUBJECTS:
        validate_choice(kind, tuple(_SUBJECTS), f"{path}.kind", errors)
        return
    here, given = f"{path}.{_SUBJECTS[kind]}", subject.get(_SUBJECTS[kind])
    if given is None:
        why = f"{_SUBJECTS[kind]} is required when subject kind is '{kind}'"
        errors.append(required_value(here, why))
    else:
        name = given.get("name") or ""
        if not name:
            errors.append(required_value(f"{here}.name"))
        elif kind == "ServiceAccount" and name != "*":
            validate_with(names.dns_subdomain, name, f"{here}.name", errors)
        if kind == "ServiceAccount" and not given.get("namespace"):
            why = "must specify namespace for service account"
            errors.append(required_value(f"{here}.namespace", why))
        elif kind == "ServiceAccount":
            validate_with(names.dns_label, given["namespace"], f"{here}.namespace", errors)
    for other in _FORBIDDEN_BESIDE[kind]:
        if subject.get(_SUBJECTS[other]) is not None:
            why = f"{_SUBJECTS[other]} is forbidden when subject kind is not '{other}'"
            errors.append(field_forbidden(f"{path}.{_SUBJECTS[other]}", why))


def _validate_resource_rule(rule: Obj, path: str, errors: Errors) -> None:
    _validate_verbs(rule, path, errors)
    for key, one, several in (
        ("apiGroups", "api group", "api groups"), ("resources", "resource", "resources"),
    ):  # fmt: skip
        given = rule.get(key) or []
        if not given:
            why = f"resource rules must supply at least one {one}"
            errors.append(required_value(f"{path}.{key}", why))
        elif len(given) > 1 and "*" in given:
            why = f"if '*' is present, must not specify other {several}"
            errors.append(invalid_value(f"{path}.{key}", given, why))
    namespaces = rule.get("namespaces") or []
    if not namespaces and not rule.get("clusterScope"):
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.append(required_value(f"{path}.namespaces", why))
    elif "*" in namespaces:
        if len(namespaces) > 1:
            why = "if '*' is present, must not specify other namespaces"
            errors.append(invalid_value(f"{path}.namespaces", namespaces, why))
    else:
        for index, name in enumerate(namespaces):
            for why in names.dns_label(name):
                shown = f"each member of this list must be '*' or a DNS-1123 label; {why}"
                errors.append(invalid_value(f"{path}.namespaces[{index}]", name, shown))


def _validate_url_rule(rule: Obj, path: str, errors: Errors) -> None:
    _validate_verbs(rule, path, errors)
    urls = rule.get("nonResourceURLs") or []
    if not urls:
        why = "nonResourceURLs must contain at least one value"
        errors.append(required_value(f"{path}.nonResourceURLs", why))
    elif "*" in urls and len(urls) > 1:
        why = "if '*' is present, must not specify other non-resource URLs"
        errors.append(invalid_value(f"{path}.nonResourceURLs", urls, why))


def _validate_verbs(rule: Obj, path: str, errors: Errors) -> None:
    verbs = rule.get("verbs") or []
    if not verbs:
        why = "verbs must contain at least one value"
        errors.append(required_value(f"{path}.verbs", why))
    elif "*" in verbs:
        if len(verbs) > 1:
            why = "if '*' is present, must not specify other verbs"
            errors.append(invalid_value(f"{path}.verbs", verbs, why))
    elif not _VERBS.issuperset(verbs):
        errors.append(not_supported(f"{path}.verbs", verbs, sorted(_VERBS)))


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
            errors.append(declared(field_forbidden(f"{here}.queuing", why)))
    elif kind == "Queue":
        if queuing is None:
            why = "must not be empty if limited.limitResponse.type is Limited"
            errors.append(declared(required_value(f"{here}.queuing", why)))
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
