"""Conditions of the common form (metav1.Condition), as several kinds check them in their status.

Job: what must hold of such a list.
"""

from sampan.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required_value,
    too_long,
)
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import validate_with
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]
STATUSES = ("False", "True", "Unknown")
_REASON = lazy_pattern(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_WORDS = (
    "a condition reason must start with alphabetic character, optionally followed by a string of"
    " alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g."
    " 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex"
    " used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)
_MOST_REASON_BYTES, _MOST_MESSAGE_BYTES = 1024, 32 * 1024


def validate_common_conditions(conditions: list[Obj] | None, path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for index, condition in enumerate(conditions or ()):
        kind = condition.get("type") or ""
        if kind in seen:
            errors.append(duplicate(f"{path}[{index}].type", kind))
        seen.add(kind)
        _validate_condition(condition, f"{path}[{index}]", errors)


def validate_condition_types(conditions: list[Obj] | None, path: str, errors: Errors) -> None:
    """What kinds with conditions of their own form ask for: a type, and each once."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions or ()):
        kind = condition.get("type") or ""
        if kind in seen:
            errors.append(duplicate(f"{path}[{index}].type", kind))
        seen.add(kind)
        if not kind:
            errors.append(required_value(f"{path}[{index}].type", "must not be empty"))


def _validate_condition(condition: Obj, path: str, errors: Errors) -> None:
    validate_with(names.qualified_name, condition.get("type") or "", f"{path}.type", errors)
    status = condition.get("status") or ""
    if status not in STATUSES:
        errors.append(not_supported(f"{path}.status", status, STATUSES))
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        why = "must be greater than or equal to zero"
        errors.append(invalid_value(f"{path}.observedGeneration", generation, why))
    if not condition.get("lastTransitionTime"):
        errors.append(required_value(f"{path}.lastTransitionTime"))
    reason = condition.get("reason") or ""
    if not reason:
        errors.append(required_value(f"{path}.reason"))
    elif not _REASON.fullmatch(reason):
        errors.append(invalid_value(f"{path}.reason", reason, _REASON_WORDS))
    if len(reason.encode()) > _MOST_REASON_BYTES:
        errors.append(too_long(f"{path}.reason", _MOST_REASON_BYTES))
    if len((condition.get("message") or "").encode()) > _MOST_MESSAGE_BYTES:
        errors.append(too_long(f"{path}.message", _MOST_MESSAGE_BYTES))
