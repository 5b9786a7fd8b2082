"""Objects of custom kinds: what their definition asks of them.

Job: an object, and the one before it → causes and warnings: schema, list types, embedded objects,
    rules.
Invariant: rules are asked only about objects whose shape is the one they expect.
"""

from typing import Any

from sampan.api.custom import embedded, value_validation
from sampan.api.custom.custom_version import CustomVersion
from sampan.api.custom.structural import MISSING
from sampan.api.decode_scalars import path_text
from sampan.api.errors import FieldError, invalid_value, required_value
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.metadata import validate_metadata

Errors = list[FieldError]

# Errors after which rules are not looked at: the object is not what they expect.
_BLOCKING = frozenset({
    "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany",
    "FieldValueTypeInvalid",
})  # fmt: skip
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing"
    " errors to complete validation"
)


def object_errors(custom: CustomVersion, new: Obj, old: Obj | None, warnings: list[str]) -> Errors:
    """Beyond metadata."""
    if custom.is_sound(new):
        return _broken_rules(custom, [], new, old, warnings)
    before: Any = MISSING if old is None else old
    problems = value_validation.check_value(custom.checks, new, before)
    return _further(custom, value_validation.field_errors(problems), new, old, warnings)


def status_errors(custom: CustomVersion, new: Obj, old: Obj, warnings: list[str]) -> Errors:
    """Of a write of the status: its own part of the schema, and the rules of the whole."""
    errors: Errors = []
    if custom.status_checks is not None and "status" in new:
        before = old.get("status", MISSING)
        problems = value_validation.check_value(custom.status_checks, new["status"], before)
        errors = value_validation.field_errors(problems, "status")
    return _further(custom, errors, new, old, warnings)


def _further(
    custom: CustomVersion, errors: Errors, new: Obj, old: Obj | None, warnings: list[str]
) -> Errors:
    if custom.duplicates is not None:
        errors += _duplicates(custom, new, old)
    if custom.embedded_objects is not None:
        errors += embedded_errors(custom.embedded_objects, new)
    return _broken_rules(custom, errors, new, old, warnings)


def _broken_rules(
    custom: CustomVersion, errors: Errors, new: Obj, old: Obj | None, warnings: list[str]
) -> Errors:
    if custom.rules is None:
        return errors
    if any(error.reason in _BLOCKING for error in errors):
        return [*errors, invalid_value("<nil>", None, _NOT_CHECKED)]
    found = custom.rules.run(new, MISSING if old is None else old)
    warnings.extend(found.warnings)
    return errors + found.errors


def _duplicates(custom: CustomVersion, new: Obj, old: Obj | None) -> Errors:
    assert custom.duplicates is not None
    errors: Errors = []
    custom.duplicates(new, "", errors)
    if errors and old is not None:
        before: Errors = []
        custom.duplicates(old, "", before)
        if before:
            return []  # what was wrong may stay wrong
    return errors


def embedded_errors(walk: embedded.Walk, obj: Obj) -> Errors:
    errors: Errors = []
    walk(obj, (), lambda inner, path: validate_embedded(inner, path_text(path), errors))
    return errors


def validate_embedded(inner: Obj, path: str, errors: Errors) -> None:
    """An object inside of another says what it is."""
    version, kind = inner.get("apiVersion"), inner.get("kind")
    if not version:
        errors.append(required_value(f"{path}.apiVersion"))
    elif isinstance(version, str) and version.count("/") > 1:
        why = f"unexpected GroupVersion string: {version}"
        errors.append(invalid_value(f"{path}.apiVersion", version, why))
    if not kind:
        errors.append(required_value(f"{path}.kind"))
    elif isinstance(kind, str):
        for wrong in names.dns_1035_label(kind.lower()):
            why = f"may have mixed case, but should otherwise match: {wrong}"
            errors.append(invalid_value(f"{path}.kind", kind, why))
    meta = inner.get("metadata")
    if isinstance(meta, dict):
        # Its name and namespace are another server's business.
        apart = ("name", "namespace", "generateName")
        checked = {key: value for key, value in meta.items() if key not in apart}
        checked["name"] = "x"
        validate_metadata(checked, False, names.dns_subdomain, f"{path}.metadata", errors)
