"""What a schema of a CustomResourceDefinition may say, apart from being structural.

Job: schema → causes: keywords that are not supported, list and map types, types.
Invariant: every part is looked at, also below allOf, anyOf, oneOf and not.
"""

from collections.abc import Iterator
from typing import Any

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj

Errors = list[FieldError]

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "apiVersion", "kind")
_X = "x-kubernetes-"
_UNSUPPORTED = {
    "id": "id is not supported",
    "additionalItems": "additionalItems is not supported",
    "patternProperties": "patternProperties is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "$ref": "$ref is not supported",
}


def children(schema: Obj, path: str) -> Iterator[tuple[Obj, str]]:
    """Every schema directly below one, with its path."""
    for key, prop in (schema.get("properties") or {}).items():
        yield prop, f"{path}.properties[{key}]"
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, dict):
        yield items, f"{path}.items"
    if isinstance(additional, dict):
        yield additional, f"{path}.additionalProperties"
    yield from nested_schemas(schema, path)


def nested_schemas(schema: Obj, path: str) -> Iterator[tuple[Obj, str]]:
    for key in ("allOf", "anyOf", "oneOf"):
        for at, item in enumerate(schema.get(key) or ()):
            yield item, f"{path}.{key}[{at}]"
    if isinstance(schema.get("not"), dict):
        yield schema["not"], f"{path}.not"


def is_convertible(schema: Obj) -> bool:
    """Whether it can be made structural at all: nothing in it that has no place there."""
    if schema.get("$schema") or isinstance(schema.get("items"), list):
        return False
    if any(schema.get(key) for key in _UNSUPPORTED):
        return False
    return all(is_convertible(child) for child, _ in children(schema, ""))


def validate_openapi(schema: Obj, path: str, errors: Errors) -> None:
    if schema.get("nullable"):
        errors.append(field_forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    for key in _META:
        _validate_meta_default((schema.get("properties") or {}).get(key), key, path, errors)
    _validate(schema, path, errors)


def _validate_meta_default(schema: Obj | None, key: str, path: str, errors: Errors) -> None:
    """Identity is nobody's to fill in."""
    if schema is None:
        return
    waiting = [(schema, f"{path}.properties[{key}]")]
    while waiting:
        part, place = waiting.pop()
        if part.get("default") is not None:
            why = f"must not be set in top-level {key}"
            errors.append(field_forbidden(f"{place}.default", why))
        waiting.extend(children(part, place))


def _validate(schema: Obj, path: str, errors: Errors) -> None:
    for key, why in _UNSUPPORTED.items():
        if schema.get(key) or (key == "$ref" and schema.get(key) is not None):
            errors.append(field_forbidden(f"{path}.{key}", why))
    _validate_type(schema, path, errors)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(field_forbidden(f"{path}.uniqueItems", why))
    additional = schema.get("additionalProperties")
    if additional is not None and additional is not True and schema.get("properties"):
        why = "additionalProperties and properties are mutual exclusive"
        errors.append(field_forbidden(f"{path}.additionalProperties", why))
    if schema.get(f"{_X}preserve-unknown-fields") is False:
        why = "must be true or undefined"
        errors.append(invalid_value(f"{path}.{_X}preserve-unknown-fields", False, why))
    _validate_map_type(schema, path, errors)
    _validate_list_type(schema, path, errors)
    for child, place in children(schema, path):
        _validate(child, place, errors)


def _validate_type(schema: Obj, path: str, errors: Errors) -> None:
    kind = schema.get("type") or ""
    if kind and kind not in TYPES:
        errors.append(not_supported(f"{path}.type", kind, TYPES))
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        errors.append(field_forbidden(f"{path}.type", why))
    if isinstance(schema.get("items"), list):
        why = "items must be a schema object and not an array"
        errors.append(field_forbidden(f"{path}.items", why))


def _must_be(kind: str, schema: Obj, path: str, because: str, errors: Errors) -> None:
    given = schema.get("type") or ""
    if given == kind:
        return
    why = f"must be {kind} if {because}"
    if given:
        errors.append(invalid_value(f"{path}.type", given, why))
    else:
        errors.append(required_value(f"{path}.type", why))


def _validate_map_type(schema: Obj, path: str, errors: Errors) -> None:
    given = schema.get(f"{_X}map-type")
    if given is None:
        return
    if given not in ("atomic", "granular"):
        errors.append(not_supported(f"{path}.{_X}map-type", given, ("atomic", "granular")))
    _must_be("object", schema, path, f"{_X}map-type is specified", errors)


def _validate_list_type(schema: Obj, path: str, errors: Errors) -> None:
    given, keys = schema.get(f"{_X}list-type"), schema.get(f"{_X}list-map-keys") or []
    if given is not None:
        _must_be("array", schema, path, f"{_X}list-type is specified", errors)
        if given not in ("atomic", "set", "map"):
            errors.append(not_supported(f"{path}.{_X}list-type", given, ("atomic", "set", "map")))
    if keys and given != "map":
        why = f"must be map if {_X}list-map-keys is non-empty"
        place = f"{path}.{_X}list-type"
        errors.append(
            required_value(place, why) if given is None else invalid_value(place, given, why)
        )
    items = schema.get("items")
    if given == "map":
        _validate_list_map(items, keys, path, errors)
    elif given == "set" and isinstance(items, dict):
        _validate_list_set(items, f"{path}.items", errors)


def _validate_list_set(items: Obj, path: str, errors: Errors) -> None:
    if items.get("nullable"):
        why = f"cannot be nullable when {_X}list-type is set"
        errors.append(field_forbidden(f"{path}.nullable", why))
    if items.get("type") == "object" and items.get(f"{_X}map-type") != "atomic":
        why = f"must be atomic as item of a list with {_X}list-type=set"
        errors.append(invalid_value(f"{path}.{_X}map-type", items.get(f"{_X}map-type"), why))
    inner = items.get(f"{_X}list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        why = f"must be atomic as item of a list with {_X}list-type=set"
        errors.append(invalid_value(f"{path}.{_X}list-type", inner, why))


def _validate_list_map(items: Any, keys: list[str], path: str, errors: Errors) -> None:
    place = f"{path}.{_X}list-map-keys"
    if not keys:
        errors.append(required_value(place, f"must not be empty if {_X}list-type is map"))
    if not isinstance(items, dict):
        why = f"must have a schema if {_X}list-type is map"
        errors.append(required_value(f"{path}.items", why))
        return
    if items.get("type") != "object":
        why = f"must be object if parent array's {_X}list-type is map"
        errors.append(invalid_value(f"{path}.items.type", items.get("type") or "", why))
        return
    if items.get("nullable"):
        why = f"cannot be nullable when {_X}list-type is map"
        errors.append(field_forbidden(f"{path}.items.nullable", why))
    fields = items.get("properties") or {}
    if any(key not in fields for key in keys):
        why = "entries must all be names of item properties"
        errors.append(invalid_value(place, keys, why))
    if len(set(keys)) != len(keys):
        errors.append(invalid_value(place, keys, "must not contain duplicate entries"))
    needed = items.get("required") or ()
    for key in dict.fromkeys(keys):
        if key in fields:
            where = f"{path}.items.properties[{key}]"
            _validate_key(fields[key], key in needed, where, errors)


def _validate_key(schema: Obj, is_required: bool, path: str, errors: Errors) -> None:
    if schema.get("type") in ("array", "object"):
        why = f"must be a scalar type if parent array's {_X}list-type is map"
        errors.append(invalid_value(f"{path}.type", schema["type"], why))
    what = f"this property is in {_X}list-map-keys, so it"
    if not is_required and schema.get("default") is None:
        why = f"{what} must have a default or be a required property"
        errors.append(required_value(f"{path}.default", why))
    if schema.get("nullable"):
        errors.append(field_forbidden(f"{path}.nullable", f"{what} cannot be nullable"))
