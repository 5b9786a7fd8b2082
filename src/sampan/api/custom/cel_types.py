"""Structural schemas, as CEL sees them.

Job: a node of a schema → its CEL type, and a value of that node → its CEL value. Pure.
Invariant: what a schema does not declare has no type: expressions cannot speak of it.
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from typing import Any

from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.field_names import escape
from sampan.api.cel.language.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_type,
)
from sampan.api.cel.libraries.times import parse_duration, parse_timestamp
from sampan.api.custom.structural import Structural

_SCALARS = {"integer": INT, "number": DOUBLE, "boolean": BOOL}
_TEXTS = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}
_METADATA = {"name": STRING, "generateName": STRING}

Convert = Callable[[Any], Any]


class StructuralObjects:
    """The object types of one schema, named by where they are."""

    def __init__(self) -> None:
        self._fields: dict[str, dict[str, Type]] = {}

    def fields_of(self, name: str) -> Mapping[str, Type] | None:
        return self._fields.get(name)

    def type_of(self, node: Structural, name: str, is_object: bool = False) -> Type | None:
        """None where the schema says nothing that expressions could use."""
        if node.int_or_string:
            return DYN
        if node.type == "object":
            return self._object(node, name, is_object or node.embedded)
        if node.type == "array":
            inner = None if node.items is None else self.type_of(node.items, f"{name}.@items")
            return None if inner is None else list_of(inner)
        if node.type == "string":
            return _TEXTS.get(node.schema.get("format") or "", STRING)
        return _SCALARS.get(node.type)

    def _object(self, node: Structural, name: str, is_object: bool) -> Type | None:
        if isinstance(node.additional, Structural) and not is_object:
            inner = self.type_of(node.additional, f"{name}.@values")
            return None if inner is None else map_of(STRING, inner)
        fields: dict[str, Type] = {}
        self._fields[name] = fields
        for key, prop in node.properties.items():
            found = self.type_of(prop, f"{name}.{key}")
            shown = escape(key)
            if found is not None and shown is not None:
                fields[shown] = found
                fields.setdefault(key, found)  # also where only CEL's own parser minds the name
        if is_object:
            fields |= {"kind": STRING, "apiVersion": STRING}
            fields["metadata"] = object_type(f"{name}.metadata")
            self._fields[f"{name}.metadata"] = dict(_METADATA)
        return object_type(name)


def converter(node: Structural, is_object: bool = False) -> Convert | None:
    """None where values are good as they are."""
    if node.type == "string":
        return _text_converter(node.schema.get("format") or "")
    if node.type == "array" and node.items is not None:
        each = converter(node.items)
        return None if each is None else lambda value: [_convert(each, entry) for entry in value]
    if node.type == "number":
        return lambda value: float(value) if type(value) is int else value
    if node.type != "object":
        return None
    fields = {key: converter(prop) for key, prop in node.properties.items()}
    nullable = any(prop.nullable for prop in node.properties.values())
    others = converter(node.additional) if isinstance(node.additional, Structural) else None
    wanted = {key: field for key, field in fields.items() if field is not None}
    if not wanted and not nullable and others is None:
        return None

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            return value
        return {
            key: _convert(wanted.get(key, others if key not in fields else None), item)
            for key, item in value.items()
            if item is not None
        }

    return convert


def _convert(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _text_converter(format_name: str) -> Convert | None:
    if format_name in ("date-time", "date"):
        return _timestamp
    if format_name == "duration":
        return lambda value: parse_duration(value) if type(value) is str else value
    return _bytes if format_name == "byte" else None


def _timestamp(value: Any) -> Any:
    if type(value) is not str:
        return value
    return parse_timestamp(value if "T" in value.upper() else f"{value}T00:00:00Z")


def _bytes(value: Any) -> Any:
    try:
        return b64decode(value, validate=True) if type(value) is str else value
    except (NotBase64, ValueError) as error:
        raise EvaluationError(f"illegal base64 data: {value}") from error
