"""Which writes a webhook or a policy asks for: rules and selectors.

Job: what must hold of the rules of webhooks and of the match constraints of policies.
"""

from sampan.api.errors import FieldError, duplicate, invalid_value, not_supported, required_value
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import validate_with
from sampan.api.validation.selectors import validate_label_selector

Errors = list[FieldError]
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_MATCH_POLICIES = ("Equivalent", "Exact")


def validate_match(match: Obj, path: str, errors: Errors) -> None:
    policy = match.get("matchPolicy")
    if policy is None:
        errors.append(required_value(f"{path}.matchPolicy"))
    elif policy not in _MATCH_POLICIES:
        errors.append(not_supported(f"{path}.matchPolicy", policy, _MATCH_POLICIES))
    for key in ("namespaceSelector", "objectSelector"):
        if match.get(key) is None:
            errors.append(required_value(f"{path}.{key}"))
        else:
            validate_label_selector(match[key], f"{path}.{key}", errors)
    for key in ("resourceRules", "excludeResourceRules"):
        validate_rules(match, key, path, errors)
        for index, rule in enumerate(match.get(key) or ()):
            _validate_names(rule, f"{path}.{key}[{index}].resourceNames", errors)


def validate_rules(holder: Obj, key: str, path: str, errors: Errors) -> None:
    for index, rule in enumerate(holder.get(key) or ()):
        here = f"{path}.{key}[{index}]"
        _validate_words(rule.get("operations") or [], "operations", f"{here}.operations", errors)
        for number, operation in enumerate(rule.get("operations") or ()):
            if operation not in _OPERATIONS:
                field = f"{here}.operations[{number}]"
                errors.append(not_supported(field, operation, _OPERATIONS))
        for field in ("apiGroups", "apiVersions", "resources"):
            _validate_words(rule.get(field) or [], field, f"{here}.{field}", errors)
        for number, version in enumerate(rule.get("apiVersions") or ()):
            if not version:
                errors.append(required_value(f"{here}.apiVersions[{number}]"))
        _validate_resources(rule.get("resources") or [], f"{here}.resources", errors)
        scope = rule.get("scope")
        if scope is not None and scope not in _SCOPES:
            errors.append(not_supported(f"{here}.scope", scope, _SCOPES))


def _validate_words(values: list[str], field: str, path: str, errors: Errors) -> None:
    if not values:
        errors.append(required_value(path))
    elif "*" in values and len(values) > 1 and field != "resources":
        others = "operations" if field == "operations" else "API " + field[3:].lower()
        why = f"if '*' is present, must not specify other {others}"
        errors.append(invalid_value(path, values, why))


def _validate_resources(resources: list[str], path: str, errors: Errors) -> None:
    """Wildcards make others superfluous, which upstream does not let pass."""
    all_below: set[str] = set()  # of x/*
    all_with: set[str] = set()  # of */x
    for index, resource in enumerate(resources):
        if not resource:
            errors.append(required_value(f"{path}[{index}]"))
            continue
        holder, slash, sub = resource.partition("/")
        if not slash:
            continue
        for known, text in ((holder in all_below, f"{holder}/*"), (sub in all_with, f"*/{sub}")):
            if known:
                why = f"if '{text}' is present, must not specify {resource}"
                errors.append(invalid_value(f"{path}[{index}]", resource, why))
        all_below |= {holder} if sub == "*" else set()
        all_with |= {sub} if holder == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        why = "if '*/*' is present, must not specify other resources"
        errors.append(invalid_value(path, resources, why))
    plain = [item for item in resources if item and "/" not in item]
    if "*" in plain and plain[-1] != "*":  # as upstream, which remembers the last one only
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid_value(path, resources, why))


def _validate_names(rule: Obj, path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for index, name in enumerate(rule.get("resourceNames") or ()):
        validate_with(names.path_segment, name, f"{path}[{index}]", errors)
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
