"""Is a schema structural? Every field has a type, and logic only restricts what was declared.

Job: schema → causes.
Invariant: a schema without causes can be pruned, defaulted and merged without looking at a value.
"""

from sampan.api.cel.libraries.regex import NotRegex
from sampan.api.cel.libraries.regex import compile_pattern as regex
from sampan.api.errors import FieldError, field_forbidden, invalid_value, required_value
from sampan.api.objects import Obj
from sampan.api.validation.custom_resources.openapi_schema import nested_schemas

Errors = list[FieldError]

ROOT, ITEM, FIELD = "root", "item", "field"
_X = "x-kubernetes-"
_EMPTY_TYPE = {
    ROOT: "must not be empty at the root",
    ITEM: "must not be empty for specified array items",
    FIELD: "must not be empty for specified object fields",
}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
# What only the structure may say, and how a refusal is worded.
_FORBIDDEN_BELOW = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "externalDocs": "must be undefined to be structural",
    f"{_X}preserve-unknown-fields": "must be false to be structural",
    f"{_X}embedded-resource": "must be false to be structural",
    f"{_X}int-or-string": "must be false to be structural",
    f"{_X}list-map-keys": "must be empty to be structural",
    f"{_X}list-type": "must be undefined to be structural",
    f"{_X}map-type": "must be undefined to be structural",
    f"{_X}validations": "must be empty to be structural",
}


def validate_structural(schema: Obj, path: str, errors: Errors) -> None:
    _validate(schema, ROOT, path, errors)
    for item, place in nested_schemas(schema, path):
        _validate_completeness(item, schema, path, place, errors)


def _validate(schema: Obj, level: str, path: str, errors: Errors) -> None:
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if schema.get("type") == "array" and items is None:
        errors.append(required_value(f"{path}.items", "must be specified"))
    if isinstance(items, dict):
        _validate(items, ITEM, f"{path}.items", errors)
    for key, prop in (schema.get("properties") or {}).items():
        _validate(prop, FIELD, f"{path}.properties[{key}]", errors)
    if additional is not None and level == ROOT:
        why = "must not be used at the root"
        errors.append(field_forbidden(f"{path}.additionalProperties", why))
    if isinstance(additional, dict):
        _validate(additional, FIELD, f"{path}.additionalProperties", errors)
    _validate_extensions(schema, path, errors)
    _validate_values(schema, path, errors)
    _validate_type(schema, level, path, errors)
    _validate_identity(schema, level, path, errors)


def _validate_extensions(schema: Obj, path: str, errors: Errors) -> None:
    if not schema.get(f"{_X}int-or-string"):
        return
    for key in (f"{_X}preserve-unknown-fields", f"{_X}embedded-resource"):
        if schema.get(key):
            why = f"must be false if {_X}int-or-string is true"
            errors.append(invalid_value(f"{path}.{key}", True, why))


def _validate_values(schema: Obj, path: str, errors: Errors) -> None:
    """Of the structure itself: here the two spellings of int-or-string are allowed."""
    for item, place in nested_schemas(schema, path):
        if place.startswith(f"{path}.anyOf[") and schema.get("anyOf") == _INT_OR_STRING:
            continue
        first = place == f"{path}.allOf[0]" and item.get("anyOf") == _INT_OR_STRING
        _validate_nested(item, place, errors, skip_any_of=first)
    _validate_pattern(schema, path, errors)


def _validate_pattern(schema: Obj, path: str, errors: Errors) -> None:
    pattern = schema.get("pattern")
    if not pattern:
        return
    try:
        regex(pattern)
    except NotRegex as error:
        why = f"must be a valid regular expression, but isn't: {error}"
        errors.append(invalid_value(f"{path}.pattern", pattern, why))


def _validate_nested(schema: Obj, path: str, errors: Errors, skip_any_of: bool = False) -> None:
    for item, place in nested_schemas(schema, path):
        if not (skip_any_of and place.startswith(f"{path}.anyOf[")):
            _validate_nested(item, place, errors)
    _validate_pattern(schema, path, errors)
    if isinstance(schema.get("items"), dict):
        _validate_nested(schema["items"], f"{path}.items", errors)
    for key, prop in (schema.get("properties") or {}).items():
        _validate_nested(prop, f"{path}.properties[{key}]", errors)
    for key, why in _FORBIDDEN_BELOW.items():
        value = schema.get(key)
        if value or (value is not None and key in ("additionalProperties", "default")):
            errors.append(field_forbidden(f"{path}.{key}", why))
    if "metadata" in (schema.get("properties") or {}):
        why = "must not be specified in a nested context"
        errors.append(field_forbidden(f"{path}.properties[metadata]", why))


def _validate_type(schema: Obj, level: str, path: str, errors: Errors) -> None:
    kind = schema.get("type") or ""
    embedded = bool(schema.get(f"{_X}embedded-resource"))
    free = schema.get(f"{_X}int-or-string") or schema.get(f"{_X}preserve-unknown-fields")
    if embedded and kind != "object":
        why = f"must be object if {_X}embedded-resource is true"
        place = f"{path}.type"
        errors.append(invalid_value(place, kind, why) if kind else required_value(place, why))
    elif not kind and not free:
        errors.append(required_value(f"{path}.type", _EMPTY_TYPE[level]))
    if level == ROOT and kind and kind != "object":
        errors.append(invalid_value(f"{path}.type", kind, "must be object at the root"))
    if not embedded:
        return
    if schema.get("additionalProperties") is not None:
        why = f"must not be used if {_X}embedded-resource is set"
        errors.append(field_forbidden(f"{path}.additionalProperties", why))
    if not schema.get(f"{_X}preserve-unknown-fields") and not schema.get("properties"):
        why = (
            f"must not be empty if {_X}embedded-resource is true without "
            f"{_X}preserve-unknown-fields"
        )
        errors.append(required_value(f"{path}.properties", why))


def _validate_identity(schema: Obj, level: str, path: str, errors: Errors) -> None:
    """apiVersion, kind and metadata of the object, or of one that is embedded."""
    fields = schema.get("properties") or {}
    if level != ROOT and not schema.get(f"{_X}embedded-resource"):
        return
    for key in ("kind", "apiVersion"):
        if key in fields and fields[key].get("type") != "string":
            given = fields[key].get("type") or ""
            errors.append(invalid_value(f"{path}.properties[{key}].type", given, "must be string"))
    metadata = fields.get("metadata")
    if metadata is None:
        return
    place = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        errors.append(invalid_value(f"{place}.type", metadata.get("type") or "", "must be object"))
    if level == ROOT and not _restricts_names_only(metadata):
        why = (
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )
        errors.append(field_forbidden(place, why))


def _restricts_names_only(metadata: Obj) -> bool:
    said = {key for key, value in metadata.items() if value not in (None, "", [], {}, False)}
    fields = set(metadata.get("properties") or {})
    return said <= {"type", "default", "properties"} and fields <= {"name", "generateName"}


def _validate_completeness(
    schema: Obj, structure: Obj, path: str, place: str, errors: Errors
) -> None:
    """What logic at the root speaks of must be declared."""
    for item, inner in nested_schemas(schema, place):
        _validate_completeness(item, structure, path, inner, errors)
    fields = structure.get("properties") or {}
    for key, prop in (schema.get("properties") or {}).items():
        where, said = f"{path}.properties[{key}]", f"{place}.properties[{key}]"
        if key not in fields:
            errors.append(required_value(where, f"because it is defined in {said}"))
        else:
            _validate_completeness(prop, fields[key], where, said, errors)
    if isinstance(schema.get("items"), dict):
        if not isinstance(structure.get("items"), dict):
            why = f"because it is defined in {place}.items"
            errors.append(required_value(f"{path}.items", why))
        else:
            _validate_completeness(
                schema["items"], structure["items"], f"{path}.items", f"{place}.items", errors
            )
