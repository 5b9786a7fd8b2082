"""The published types as CEL types.

Job: a definition's fields → CEL types, under the names that expressions use.
Invariant: where nothing is known of a field it may be anything.
"""

from collections.abc import Mapping

from sampan.api.cel.language.field_names import escape
from sampan.api.cel.language.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_type,
)
from sampan.api.schema.field_kinds import Type as Published
from sampan.api.schema.published import Schema

_SCALARS = {"integer": INT, "number": DOUBLE, "boolean": BOOL}
_TEXTS = {"date-time": TIMESTAMP, "micro-time": TIMESTAMP, "byte": BYTES, "int-or-string": DYN}


class SchemaObjects:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[str, Mapping[str, Type] | None] = {}
        self._names = frozenset(schema.names())

    def type_of(self, api_version: str, kind: str) -> Type | None:
        name = self._schema.name_of(api_version, kind)
        return None if name is None else object_type(name)

    def fields_of(self, name: str) -> Mapping[str, Type] | None:
        if name not in self._names:
            return None
        if name not in self._known:
            fields = self._schema.fields_of(name)
            shown = {escape(key): _cel_type(field) for key, field in fields.items()}
            self._known[name] = {key: item for key, item in shown.items() if key is not None}
        return self._known[name]


def _cel_type(published: Published) -> Type:
    if published.shape == "object":
        return object_type(published.name)
    if published.shape == "list" and published.element is not None:
        return list_of(_cel_type(published.element))
    if published.shape == "map" and published.element is not None:
        return map_of(STRING, _cel_type(published.element))
    if published.shape == "string":
        return _TEXTS.get(published.format, STRING)
    return _SCALARS.get(published.shape, DYN)
