"""Objects that kubectl holds as Go structs are printed in the order of those structs.

Job: the same object with its keys in that order; fields that no struct has stay out.
Invariant: the order is that of the protobuf numbers, which follow the structs, except where
    go_field_order.py says otherwise.
"""

import functools
from typing import Any

from sampan.api.objects import Obj
from sampan.api.schema.field_kinds import Type
from sampan.api.schema.message_table import Messages, load_messages, own_tokens
from sampan.api.schema.published import Schema
from sampan.cli.printers.go_field_order import FIELD_ORDER


def in_go_order(obj: Obj) -> Obj:
    """`obj` is of a kind that kubectl knows; any other comes back as it is."""
    schema = _schema()
    kind = schema.type_of(str(obj.get("apiVersion")), str(obj.get("kind")))
    if kind is None:
        return obj
    ordered: Obj = _order(obj, kind)
    return ordered


def _order(value: Any, kind: Type) -> Any:
    if kind.shape == "object" and isinstance(value, dict):
        fields = _schema().fields_of(kind.name)
        # What is an object by itself, or one of a list, says first what it is.
        first = ("kind", "apiVersion") if "metadata" in fields else ()
        return {key: value[key] for key in first if key in value} | {
            key: _order(value[key], fields[key])
            for key in sorted(value, key=lambda key: _rank(kind.name, key))
            if key in fields and key not in first
        }
    if kind.shape == "list" and isinstance(value, list) and kind.element is not None:
        return [_order(item, kind.element) for item in value]
    if isinstance(value, dict):
        element = kind.element
        return {
            key: _order(value[key], element) if element is not None else value[key]
            for key in sorted(value)
        }
    return value


@functools.cache
def _schema() -> Schema:
    return Schema.load()


@functools.cache
def _messages() -> Messages:
    return load_messages()


@functools.cache
def _first_fields() -> dict[str, list[str]]:
    rows = FIELD_ORDER.replace("\n    ", " ").splitlines()
    return {name: fields.split() for name, _, fields in (row.partition(": ") for row in rows)}


def _short(name: str) -> str:
    return name.removeprefix("io.k8s.api.").removeprefix("io.k8s.apimachinery.pkg.apis.")


@functools.cache
def _ranks(name: str) -> dict[str, int]:
    fields = [token.rstrip("!?") for token in own_tokens(_messages(), name)]
    first = _first_fields().get(_short(name), [])
    order = ["metadata", *first, *(field for field in fields if field not in first)]
    return {field: rank for rank, field in reversed(list(enumerate(order)))}


def _rank(name: str, key: str) -> tuple[int, str]:
    return _ranks(name).get(key, 1000), key
