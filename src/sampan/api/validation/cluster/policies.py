"""Admission policies and their bindings.

Job: what must hold of validating and mutating policies; their expressions are compiled here.
Invariant: a policy that is stored can be run: every expression of it has a type that fits.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sampan.api.cel.language.field_names import KEYWORDS
from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, name_of, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.conditions import validate_common_conditions
from sampan.api.validation.declarative import declared
from sampan.api.validation.fields import (
    Repeats,
    validate_choice,
    validate_optional_choice,
    validate_with,
)
from sampan.api.validation.matching import validate_match
from sampan.api.validation.rules import Rules, same_rules
from sampan.api.validation.selectors import validate_label_selector
from sampan.core.patterns import lazy_pattern

if TYPE_CHECKING:
    from sampan.api.cel.policies import Expression

Errors = list[FieldError]
MOST_CONDITIONS, MOST_ANNOTATIONS, MOST_ANNOTATION_BYTES = 64, 20, 5 * 1024
_NAME = lazy_pattern(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")


def validate_policy(policy: Obj, errors: Errors) -> None:
    spec = spec_of(policy)
    _validate_frame(spec, errors)
    validations = spec.get("validations") or []
    annotations = spec.get("auditAnnotations") or []
    if not validations and not annotations:
        why = "validations or auditAnnotations must contain at least one item"
        errors += [
            required_value("spec.validations", why),
            required_value("spec.auditAnnotations", why),
        ]
    for index, validation in enumerate(validations):
        _validate_validation(validation, f"spec.validations[{index}]", errors)
    _validate_annotations(policy, annotations, errors)

    # Few write policies: the language is loaded with the first of them.
    from sampan.api.cel.policies import compile_validating

    _refuse_all(compile_validating(spec).troubles(), errors)


def validate_mutating_policy(policy: Obj, errors: Errors) -> None:
    spec = spec_of(policy)
    _validate_frame(spec, errors)
    mutations = spec.get("mutations") or []
    if not mutations:
        errors.append(required_value("spec.mutations", "mutations must contain at least one item"))
    found: Errors = []
    for index, mutation in enumerate(mutations):
        _validate_mutation(mutation, f"spec.mutations[{index}]", found)

    # As above.
    from sampan.api.cel.policies import compile_mutating

    _refuse_all(compile_mutating(spec).troubles(), found)
    errors += sorted(
        found, key=lambda match_: match_.field.partition("]")[0]
    )  # each with its mutation
    reinvocation = spec.get("reinvocationPolicy")
    validate_choice(reinvocation, ("IfNeeded", "Never"), "spec.reinvocationPolicy", errors)


def validate_policy_binding(binding: Obj, errors: Errors) -> None:
    spec = spec_of(binding)
    _validate_binding(spec, errors)
    actions = spec.get("validationActions") or []
    is_repeated = Repeats()
    for index, action in enumerate(actions):
        path = f"spec.validationActions[{index}]"
        validate_optional_choice(action, ("Audit", "Deny", "Warn"), path, errors)
        if is_repeated(action):
            errors.append(duplicate(path, action))
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure"
            " information in the API response and headers serves no purpose)"
        )
        errors.append(invalid_value("spec.validationActions", actions, why))
    if not actions:
        why = "at least one validation action is required"
        errors.append(declared(required_value("spec.validationActions", why)))


def validate_mutating_binding(binding: Obj, errors: Errors) -> None:
    _validate_binding(spec_of(binding), errors)


def validate_conditions(conditions: Sequence[Obj], path: str, errors: Errors) -> None:
    """Names and forms of match conditions; `refuse_expressions` looks at what they say."""
    if len(conditions) > MOST_CONDITIONS:
        why = f"Too many: {len(conditions)}: must have at most {MOST_CONDITIONS} items"
        errors.append(FieldError("FieldValueTooMany", path, why))
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        here, name = f"{path}[{index}]", condition.get("name") or ""
        if not (condition.get("expression") or "").strip():
            errors.append(required_value(f"{here}.expression"))
        if not name:
            errors.append(required_value(f"{here}.name"))
            continue
        validate_with(names.qualified_name, name, f"{here}.name", errors)
        if name in seen:
            errors.append(duplicate(f"{here}.name", name))
        seen.add(name)


def validate_hook_conditions(conditions: Sequence[Obj], path: str, errors: Errors) -> None:
    """Of webhooks, which have no parameters."""
    if not conditions:
        return
    # Few webhooks have conditions: the language is loaded with the first of them.
    from sampan.api.cel.policies import compile_conditions

    _refuse_all(
        [condition for condition in compile_conditions(conditions, path) if condition.trouble],
        errors,
    )
    validate_conditions(conditions, path, errors)


def _refuse_all(troubles: Sequence["Expression"], errors: Errors) -> None:
    for trouble in troubles:
        if trouble.text.strip():  # else it is missing, and that is said already
            errors.append(invalid_value(trouble.path, trouble.text, trouble.trouble))


def _validate_frame(spec: Obj, errors: Errors) -> None:
    """What validating and mutating policies have in common."""
    failure = spec.get("failurePolicy")
    if failure is None:
        errors.append(required_value("spec.failurePolicy"))
    else:
        validate_optional_choice(failure, ("Fail", "Ignore"), "spec.failurePolicy", errors)
    if spec.get("paramKind") is not None:
        _validate_param_kind(spec["paramKind"], "spec.paramKind", errors)
    constraints = spec.get("matchConstraints")
    if constraints is None:
        errors.append(required_value("spec.matchConstraints"))
    else:
        validate_match(constraints, "spec.matchConstraints", errors)
        if not constraints.get("resourceRules"):
            errors.append(required_value("spec.matchConstraints.resourceRules"))
    validate_conditions(spec.get("matchConditions") or (), "spec.matchConditions", errors)
    for index, variable in enumerate(spec.get("variables") or ()):
        _validate_variable(variable, f"spec.variables[{index}]", errors)


def _validate_param_kind(kind: Obj, path: str, errors: Errors) -> None:
    version = kind.get("apiVersion") or ""
    if not version:
        errors.append(required_value(f"{path}.apiVersion"))
    elif version.count("/") > 1:
        why = f"unexpected GroupVersion string: {version}"
        errors.append(invalid_value(f"{path}.apiVersion", version, why))
    else:
        group, _, short = version.rpartition("/")
        for value, rule in ((group, names.dns_subdomain), (short, names.dns_1035_label)):
            wrong = rule(value) if value else ()
            if wrong:
                errors.append(invalid_value(f"{path}.apiVersion", value, ",".join(wrong)))
        if not short:
            why = "version must be specified"
            errors.append(invalid_value(f"{path}.apiVersion", version, why))
    name = kind.get("kind") or ""
    wrong = names.dns_1035_label(name.lower())
    if not name:
        errors.append(required_value(f"{path}.kind"))
    elif wrong:
        why = "may have mixed case, but should otherwise match: " + ",".join(wrong)
        errors.append(invalid_value(f"{path}.kind", name, why))


def _validate_variable(variable: Obj, path: str, errors: Errors) -> None:
    name = variable.get("name") or ""
    if not name.strip():
        errors.append(required_value(f"{path}.name", "name is not specified"))
    elif not _NAME.fullmatch(name) or name in KEYWORDS:
        errors.append(invalid_value(f"{path}.name", name, "must be a valid CEL identifier"))
    _require_expression(variable, f"{path}.expression", errors)


def _require_expression(holder: Obj, path: str, errors: Errors) -> None:
    if not (holder.get("expression") or "").strip():
        errors.append(required_value(path, "expression is not specified"))


def _validate_validation(validation: Obj, path: str, errors: Errors) -> None:
    _require_expression(validation, f"{path}.expression", errors)
    expression = validation.get("messageExpression") or ""
    if expression and not expression.strip():
        why = "must be non-empty if specified"
        errors.append(invalid_value(f"{path}.messageExpression", expression, why))
    message = validation.get("message") or ""
    if message and not message.strip():
        why = "message must be non-empty if specified"
        errors.append(invalid_value(f"{path}.message", message, why))
    elif set("\r\n") & set(message.strip()):
        why = "must not contain line breaks"
        errors.append(invalid_value(f"{path}.message", message, why))
    reason = validation.get("reason")
    if reason not in (None, *_REASONS):
        errors.append(not_supported(f"{path}.reason", reason, _REASONS))


def _validate_annotations(policy: Obj, annotations: Sequence[Obj], errors: Errors) -> None:
    path = "spec.auditAnnotations"
    if len(annotations) > MOST_ANNOTATIONS:
        why = f"must not have more than {MOST_ANNOTATIONS} auditAnnotations"
        errors.append(invalid_value(path, list(annotations), why))
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        here, key = f"{path}[{index}]", annotation.get("key") or ""
        if name_of(policy):
            whole = f"{name_of(policy)}/{key}"
            validate_with(names.label_key, whole, f"{here}.key", errors)
        else:
            why = "requires metadata.name be non-empty"
            errors.append(invalid_value(f"{here}.key", key, why))
        value = (annotation.get("valueExpression") or "").strip()
        if not value:
            why = "valueExpression is not specified"
            errors.append(required_value(f"{here}.valueExpression", why))
        elif len(value) > MOST_ANNOTATION_BYTES:
            why = f"must not exceed {MOST_ANNOTATION_BYTES} bytes in length"
            errors.append(required_value(f"{here}.valueExpression", why))
        if key in seen:
            errors.append(duplicate(f"{here}.key", key))
        seen.add(key)


def _validate_mutation(mutation: Obj, path: str, errors: Errors) -> None:
    kinds = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
    kind = mutation.get("patchType")
    if not kind:
        errors.append(required_value(f"{path}.patchType"))
        return
    if kind not in kinds:
        errors.append(not_supported(f"{path}.patchType", kind, tuple(kinds)))
        return
    for other, key in kinds.items():
        here = f"{path}.{key}"
        if other == kind and mutation.get(key) is None:
            errors.append(required_value(here, f"must be specified when patchType is {kind}"))
        elif other == kind:
            _require_expression(mutation[key], f"{here}.expression", errors)
        elif mutation.get(key) is not None:
            errors.append(field_forbidden(here, f"must not be specified when patchType is {kind}"))


def _validate_binding(spec: Obj, errors: Errors) -> None:
    if not spec.get("policyName"):
        errors.append(required_value("spec.policyName"))
    else:
        validate_with(names.dns_subdomain, spec["policyName"], "spec.policyName", errors)
    if spec.get("paramRef") is not None:
        _validate_param_ref(spec["paramRef"], "spec.paramRef", errors)
    if spec.get("matchResources") is not None:
        # Upstream's path lacks an r.
        validate_match(spec["matchResources"], "spec.matchResources", errors)


def _validate_param_ref(reference: Obj, path: str, errors: Errors) -> None:
    name, selector = reference.get("name") or "", reference.get("selector")
    both = "name and selector are mutually exclusive"
    if name:
        validate_with(names.path_segment, name, f"{path}.name", errors)
        if selector is not None:
            errors.append(field_forbidden(f"{path}.name", both))
    if selector is not None:
        validate_label_selector(selector, f"{path}.selector", errors)
        if name:
            errors.append(field_forbidden(f"{path}.selector", both))
    if not name and selector is None:
        errors.append(required_value(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if not action:
        errors.append(required_value(f"{path}.parameterNotFoundAction"))
    elif action not in ("Deny", "Allow"):
        errors.append(not_supported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow")))


def validate_policy_status(new: Obj, old: Obj, errors: Errors) -> None:
    status = status_of(new)
    warnings = (status.get("typeChecking") or {}).get("expressionWarnings") or ()
    for index, warning in enumerate(warnings):
        for key in ("warning", "fieldRef"):
            if not (warning.get(key) or "").strip():
                path = f"status.typeChecking.expressionWarnings[{index}].{key}"
                errors.append(required_value(path))
    validate_common_conditions(status.get("conditions"), "status.conditions", errors)


POLICY = Rules(
    names.dns_subdomain, validate_policy, same_rules(validate_policy), validate_policy_status
)
POLICY_BINDING = Rules(
    names.dns_subdomain, validate_policy_binding, same_rules(validate_policy_binding)
)
MUTATING_POLICY = Rules(
    names.dns_subdomain, validate_mutating_policy, same_rules(validate_mutating_policy)
)
MUTATING_BINDING = Rules(
    names.dns_subdomain, validate_mutating_binding, same_rules(validate_mutating_binding)
)
