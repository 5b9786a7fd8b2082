"""Label selectors and node selectors as fields of an object.

Job: what must hold of a selector that somebody wrote.
Invariant: values are checked too, so that a selector that can never match is refused.
"""

from sampan.api.errors import FieldError, field_forbidden, invalid_value, required_value
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.metadata import validate_labels

Errors = list[FieldError]
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_BAD_OPERATOR = "not a valid selector operator"


def validate_label_selector(selector: Obj | None, path: str, errors: Errors) -> None:
    if not selector:
        return
    validate_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels", errors)
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        _validate_operator(requirement, here, errors)
        validate_label_requirement(requirement, here, errors)


def validate_label_requirement(requirement: Obj, path: str, errors: Errors) -> None:
    """Whatever its operator is."""
    validate_values_given(requirement, path, errors)
    _validate_key(requirement, path, errors)
    for number, value in enumerate(requirement.get("values") or ()):
        for wrong in names.label_value(value):
            errors.append(invalid_value(f"{path}.values[{number}]", value, wrong))


def is_empty_selector(selector: Obj | None) -> bool:
    """It selects everything: no label and no expression."""
    return not (selector and (selector.get("matchLabels") or selector.get("matchExpressions")))


def validate_node_selector(selector: Obj, path: str, errors: Errors) -> None:
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        errors.append(
            required_value(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        )
    for index, term in enumerate(terms):
        validate_node_term(term, f"{path}.nodeSelectorTerms[{index}]", errors, check_values=True)


def validate_node_term(term: Obj, path: str, errors: Errors, *, check_values: bool) -> None:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        _validate_node_requirement(requirement, here, errors)
        if check_values:
            for number, value in enumerate(requirement.get("values") or ()):
                for wrong in names.label_value(value):
                    errors.append(invalid_value(f"{here}.values[{number}]", value, wrong))
    for index, requirement in enumerate(term.get("matchFields") or ()):
        _validate_node_field(requirement, f"{path}.matchFields[{index}]", errors)


def _validate_key(requirement: Obj, path: str, errors: Errors) -> None:
    key = requirement.get("key") or ""
    for wrong in names.label_key(key):
        errors.append(invalid_value(f"{path}.key", key, wrong))


def _validate_operator(requirement: Obj, path: str, errors: Errors) -> None:
    operator = requirement.get("operator") or ""
    if operator not in _OPERATORS:
        errors.append(invalid_value(f"{path}.operator", operator, _BAD_OPERATOR))


def validate_values_given(requirement: Obj, path: str, errors: Errors) -> None:
    """Where the operator wants some, and nowhere else."""
    operator, values = requirement.get("operator") or "", requirement.get("values")
    if operator in ("In", "NotIn"):
        if not values:
            why = "must be specified when `operator` is 'In' or 'NotIn'"
            errors.append(required_value(f"{path}.values", why))
    elif operator in ("Exists", "DoesNotExist") and values:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors.append(field_forbidden(f"{path}.values", why))


def _validate_node_requirement(requirement: Obj, path: str, errors: Errors) -> None:
    if requirement.get("operator") in ("Gt", "Lt"):
        if len(requirement.get("values") or ()) != 1:
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required_value(f"{path}.values", why))
    else:
        _validate_operator(requirement, path, errors)
        validate_values_given(requirement, path, errors)
    _validate_key(requirement, path, errors)


def _validate_node_field(requirement: Obj, path: str, errors: Errors) -> None:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        errors.append(invalid_value(f"{path}.operator", operator, _BAD_OPERATOR))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required_value(f"{path}.values", why))
    key = requirement.get("key") or ""
    if key != "metadata.name":
        errors.append(invalid_value(f"{path}.key", key, "not a valid field selector key"))
        return
    for index, value in enumerate(values):
        for wrong in names.dns_subdomain(value):
            errors.append(invalid_value(f"{path}.values[{index}]", value, wrong))
