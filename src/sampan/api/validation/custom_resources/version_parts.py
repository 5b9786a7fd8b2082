"""What a version of a CustomResourceDefinition says besides its schema.

Job: subresources, printer columns and selectable fields → causes.
"""

from sampan.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required_value,
    too_many,
)
from sampan.api.objects import Obj

Errors = list[FieldError]

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (
    "byte", "date", "date-time", "double", "float", "int32", "int64", "name", "password",
)  # fmt: skip
_MOST_SELECTABLE = 8
_SELECTABLE = ("string", "boolean", "integer")


def validate_subresources(subresources: Obj, path: str, errors: Errors) -> None:
    scale = subresources.get("scale")
    if scale is None:
        return
    for key, start, needed in (
        ("specReplicasPath", ".spec", True),
        ("statusReplicasPath", ".status", True),
        ("labelSelectorPath", ".status", False),
    ):
        given, place = scale.get(key) or "", f"{path}.scale.{key}"
        if not given:
            if needed:
                errors.append(required_value(place))
        elif not given.startswith("."):
            why = "must be a simple json path starting with ."
            errors.append(invalid_value(place, given, why))
        elif key == "labelSelectorPath":
            if not given.startswith((".spec.", ".status.")):
                why = "should be a json path under either .status or .spec"
                errors.append(invalid_value(place, given, why))
        elif not given.startswith(f"{start}."):
            errors.append(invalid_value(place, given, f"should be a json path under {start}"))


def validate_columns(columns: list[Obj], path: str, errors: Errors) -> None:
    for at, column in enumerate(columns):
        place = f"{path}[{at}]"
        if not column.get("name"):
            errors.append(required_value(f"{place}.name"))
        kind, form = column.get("type") or "", column.get("format") or ""
        if not kind:
            wanted = ",".join(_COLUMN_TYPES)
            errors.append(required_value(f"{place}.type", f"must be one of {wanted}"))
        elif kind not in _COLUMN_TYPES:
            errors.append(not_supported(f"{place}.type", kind, _COLUMN_TYPES))
        if form and form not in _COLUMN_FORMATS:
            errors.append(not_supported(f"{place}.format", form, _COLUMN_FORMATS))
        given = column.get("jsonPath") or ""
        if not given:
            errors.append(required_value(f"{place}.JSONPath"))
        elif not given.startswith("."):
            why = "must be a simple json path starting with ."
            errors.append(invalid_value(f"{place}.JSONPath", given, why))


def validate_selectable_fields(fields: list[Obj], schema: Obj, path: str, errors: Errors) -> None:
    if len(fields) > _MOST_SELECTABLE:
        errors.append(too_many(path, len(fields), _MOST_SELECTABLE))
    seen: set[str] = set()
    for at, field in enumerate(fields):
        given, place = field.get("jsonPath") or "", f"{path}[{at}].jsonPath"
        if not given:
            errors.append(required_value(place))
            continue
        if given in seen:
            errors.append(duplicate(place, given))
        seen.add(given)
        _validate_selectable(given, schema, place, errors)


def _validate_selectable(given: str, schema: Obj, path: str, errors: Errors) -> None:
    if not given.startswith("."):
        why = "is an invalid path: does not start with ."
        errors.append(invalid_value(path, given, why))
        return
    steps = given[1:].split(".")
    if steps[0] == "metadata":
        errors.append(invalid_value(path, given, "must not point to fields in metadata"))
        return
    part = schema
    for step in steps:
        found = (part.get("properties") or {}).get(step)
        if found is None:
            why = f"is an invalid path: does not refer to a valid field: {step}"
            errors.append(invalid_value(path, given, why))
            return
        part = found
    if part.get("type") not in _SELECTABLE:
        why = (
            "must point to a field of type string, boolean or integer. Enum string fields and "
            "strings with formats are allowed."
        )
        errors.append(invalid_value(path, given, why))
