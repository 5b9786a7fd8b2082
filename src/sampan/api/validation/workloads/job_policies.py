"""Pod failure policy, pod replacement policy and success policy of a Job.

Job: what must hold of them, in upstream's words and order.
"""

from itertools import pairwise

from sampan.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required_value,
    too_long,
    too_many,
)
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import (
    validate_not_negative,
    validate_optional_choice,
    validate_with,
)
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.workloads.job_indexes import count_of, trouble_of

Errors = list[FieldError]
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_MOST_RULES = 20
_MOST_CODES = 255
_MOST_PATTERNS = 20
_LONGEST_INDEXES = 64 * 1024


def validate_policies(spec: Obj, path: str, errors: Errors) -> None:
    failure, success = spec.get("podFailurePolicy"), spec.get("successPolicy")
    if failure is not None:
        _validate_failure_policy(spec, failure.get("rules") or [], path, errors)
    if success is not None:
        if spec.get("completionMode") != "Indexed":
            why = "requires indexed completion mode"
            shown = internal_form("SuccessPolicy", success)
            errors.append(invalid_value(f"{path}.successPolicy", shown, why))
        else:
            rules = success.get("rules") or []
            _validate_success_policy(rules, spec.get("completions") or 0, path, errors)
    replacement, here = spec.get("podReplacementPolicy"), f"{path}.podReplacementPolicy"
    if failure is None:
        validate_optional_choice(replacement, ("Failed", "TerminatingOrFailed"), here, errors)
    elif replacement not in (None, "Failed"):
        errors.append(not_supported(here, replacement, ("Failed",)))


def _validate_failure_policy(spec: Obj, rules: list[Obj], path: str, errors: Errors) -> None:
    here = f"{path}.podFailurePolicy.rules"
    if len(rules) > _MOST_RULES:
        errors.append(too_many(here, len(rules), _MOST_RULES))
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {
        container.get("name")
        for kind in ("containers", "initContainers")
        for container in pod.get(kind) or ()
    }
    for index, rule in enumerate(rules):
        _validate_failure_rule(spec, rule, f"{here}[{index}]", errors)
        name = (rule.get("onExitCodes") or {}).get("containerName")
        if name is not None and name not in containers:
            why = "must be one of the container or initContainer names in the pod template"
            field = f"{here}[{index}].onExitCodes.containerName"
            errors.append(invalid_value(field, name, why))


def _validate_failure_rule(spec: Obj, rule: Obj, path: str, errors: Errors) -> None:
    action = rule.get("action")
    _validate_choice(action, _ACTIONS, f"{path}.action", errors)
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        why = "requires the backoffLimitPerIndex to be set"
        errors.append(invalid_value(f"{path}.action", action, why))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if codes is not None:
        here = f"{path}.onExitCodes"
        _validate_choice(codes.get("operator"), ("In", "NotIn"), f"{here}.operator", errors)
        _validate_codes(codes, here, errors)
    _validate_patterns(conditions, f"{path}.onPodConditions", errors)
    if codes is not None and conditions:
        why = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(_invalid_rule(path, why))
    elif codes is None and not conditions:
        why = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(_invalid_rule(path, why))


def _validate_choice(
    value: str | None, choices: tuple[str, ...], path: str, errors: Errors
) -> None:
    if not value:
        listed = " ".join(f'"{choice}"' for choice in choices)
        errors.append(required_value(path, f"valid values: [{listed}]"))
    validate_optional_choice(value or None, choices, path, errors)


def _invalid_rule(path: str, why: str) -> FieldError:
    """Without a value, as upstream, which does not print a rule."""
    return FieldError("FieldValueInvalid", path, f"Invalid value: {why}")


def _validate_codes(codes: Obj, path: str, errors: Errors) -> None:
    values = codes.get("values") or []
    if not values:
        errors.append(invalid_value(f"{path}.values", values, "at least one value is required"))
    elif len(values) > _MOST_CODES:
        errors.append(too_many(f"{path}.values", len(values), _MOST_CODES))
    seen: set[int] = set()
    for index, code in enumerate(values):
        if code == 0 and codes.get("operator") == "In":
            why = "must not be 0 for the In operator"
            errors.append(invalid_value(f"{path}.values[{index}]", code, why))
        if code in seen:
            errors.append(duplicate(f"{path}.values[{index}]", code))
        seen.add(code)
    if any(one > other for one, other in pairwise(values)):
        errors.append(invalid_value(f"{path}.values", values, "must be ordered"))


def _validate_patterns(patterns: list[Obj], path: str, errors: Errors) -> None:
    if len(patterns) > _MOST_PATTERNS:
        errors.append(too_many(path, len(patterns), _MOST_PATTERNS))
    for index, pattern in enumerate(patterns):
        here = f"{path}[{index}]"
        validate_with(names.qualified_name, pattern.get("type") or "", f"{here}.type", errors)
        choices = ("False", "True", "Unknown")
        _validate_choice(pattern.get("status"), choices, f"{here}.status", errors)


def _validate_success_policy(rules: list[Obj], completions: int, path: str, errors: Errors) -> None:
    here = f"{path}.successPolicy.rules"
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required_value(here, why))
    if len(rules) > _MOST_RULES:
        errors.append(too_many(here, len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        _validate_success_rule(rule, completions, f"{here}[{index}]", errors)


def _validate_success_rule(rule: Obj, completions: int, path: str, errors: Errors) -> None:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        why = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(required_value(path, why))
    listed = 0
    if indexes is not None:
        here = f"{path}.succeededIndexes"
        if len(indexes) > _LONGEST_INDEXES:
            errors.append(too_long(here, _LONGEST_INDEXES))
        trouble = trouble_of(indexes, completions)
        listed = 0 if trouble else count_of(indexes)
        if trouble:
            why = f"error parsing succeededIndexes: {trouble}"
            errors.append(invalid_value(here, indexes, why))
    if count is None:
        return
    here = f"{path}.succeededCount"
    validate_not_negative(count, here, errors)
    most = "must be less than or equal to {} (the number of {})"
    if count > completions:
        why = most.format(completions, "specified completions")
        errors.append(invalid_value(here, count, why))
    if indexes is not None and count > listed:
        why = most.format(listed, "indexes in the specified succeededIndexes field")
        errors.append(invalid_value(here, count, why))
