"""Pruning and defaulting of custom objects.

Job: compile a schema into one walk that copies an object, drops nulls that may not be there, fills
    in defaults and leaves out fields that the schema does not know. Pure.
Invariant: what came in is not changed; what came out goes through unchanged.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sampan.api.custom.structural import META_FIELDS, MISSING, Structural
from sampan.api.decode_scalars import Path
from sampan.api.objects import copy_of

# (value, where it is, paths of unknown fields) → the value as it is kept
Shape = Callable[[Any, Path, list[Path]], Any]
_LARGEST = float(2**63)


def compile_shape(root: Structural) -> Shape:
    """Of a whole object: apiVersion, kind and metadata are not the schema's business."""
    return _shape(root, is_object=True)


def compile_unfilled(node: Structural) -> Shape:
    """Of one value, without filling in any default."""
    return _shape(_without_defaults(node), is_object=node.embedded)


def fill(value: Any, node: Structural) -> None:
    """Defaults alone, in place: what else is there stays, nulls too. As upstream does with what an
    apply has made, of which validation sees every null."""
    if type(value) is dict:
        for key, prop in node.properties.items():
            if prop.default is not MISSING and _lacks(value, key, prop):
                value[key] = copy_of(prop.default)
        others = node.additional if isinstance(node.additional, Structural) else None
        for key, item in value.items():
            inner = node.properties.get(key, others)
            if inner is not None:
                if item is None and inner is others and _has_default_for_null(inner):
                    value[key] = item = copy_of(inner.default)
                fill(item, inner)
    elif type(value) is list and node.items is not None:
        for at, item in enumerate(value):
            if item is None and _has_default_for_null(node.items):
                value[at] = item = copy_of(node.items.default)
            fill(item, node.items)


def _lacks(value: dict[str, Any], key: str, node: Structural) -> bool:
    return key not in value or (value[key] is None and not node.nullable)


def _has_default_for_null(node: Structural) -> bool:
    return not node.nullable and node.default is not MISSING


def _without_defaults(node: Structural) -> Structural:
    fields = {key: _without_defaults(prop) for key, prop in node.properties.items()}
    items = None if node.items is None else _without_defaults(node.items)
    additional = node.additional
    if isinstance(additional, Structural):
        additional = _without_defaults(additional)
    return replace(node, properties=fields, items=items, additional=additional, default=MISSING)


def _number(value: float) -> float | int:
    """A number without a fraction is printed without one, as Go does."""
    if value.is_integer() and -_LARGEST <= value < _LARGEST:
        return int(value)
    return value


def _empty(value: Any, path: Path, unknown: list[Path]) -> Any:
    """Where there is no schema at all: scalars stay, objects lose every field."""
    if type(value) is dict:
        unknown.extend((path, key) for key in value)
        return {}
    if type(value) is list:
        return [_empty(item, (path, at), unknown) for at, item in enumerate(value)]
    return _number(value) if type(value) is float else value


def _keep(value: Any, _path: Path, _unknown: list[Path]) -> Any:
    kind = type(value)
    if kind is dict:
        return {key: _keep(item, _path, _unknown) for key, item in value.items()}
    if kind is list:
        return [_keep(item, _path, _unknown) for item in value]
    return _number(value) if kind is float else value


def _shape(node: Structural, is_object: bool = False) -> Shape:
    in_object = _object_shape(node, is_object or node.embedded)
    in_list = _list_shape(node)

    def shape(value: Any, path: Path, unknown: list[Path]) -> Any:
        kind = type(value)
        if kind is dict:
            return in_object(value, path, unknown)
        if kind is list:
            return in_list(value, path, unknown)
        return _number(value) if kind is float else value

    return shape


def _list_shape(node: Structural) -> Shape:
    items = node.items
    if items is None:
        each: Shape = _keep if node.preserve else _empty
    else:
        # Below a node that keeps everything its items keep everything too.
        each = _shape(_open(items)) if node.preserve else _shape(items)
    default = _null_value(items)

    def shape_list(value: list[Any], path: Path, unknown: list[Path]) -> Any:
        return [
            copy_of(default) if item is None else each(item, (path, at), unknown)
            for at, item in enumerate(value)
        ]

    return shape_list


def _open(node: Structural) -> Structural:
    return node if node.preserve else replace(node, preserve=True)


def _null_value(node: Structural | None) -> Any:
    """What a null in a list becomes."""
    if node is None or node.nullable or node.default is MISSING:
        return None
    return _default_of(node)


def _default_of(node: Structural) -> Any:
    """With the defaults of what is inside of it."""
    return _shape(node)(copy_of(node.default), (), [])


def _object_shape(node: Structural, is_object: bool) -> Shape:
    shapes = {key: _shape(prop) for key, prop in node.properties.items()}
    scalars = frozenset(key for key, prop in node.properties.items() if _is_scalar(prop))
    nullable = frozenset(key for key, prop in node.properties.items() if prop.nullable)
    defaults = _defaults_of(node)
    other = _other_shape(node)
    drops_null = isinstance(node.additional, Structural) and not node.additional.nullable
    substitute = _null_value(node.additional if isinstance(node.additional, Structural) else None)
    preserve = node.preserve and node.additional is None

    def shape_object(value: dict[str, Any], path: Path, unknown: list[Path]) -> Any:
        out: dict[str, Any] = {}
        for key, item in value.items():
            if key in scalars:
                kind = type(item)
                if kind is str or kind is bool or kind is int:
                    out[key] = item
                    continue
            shape = shapes.get(key)
            if is_object and key in META_FIELDS:
                out[key] = copy_of(item)
            elif shape is not None:
                if item is not None:
                    out[key] = shape(item, (path, key), unknown)
                elif key in nullable:
                    out[key] = None
            elif preserve:
                out[key] = _keep(item, path, unknown)
            elif other is None:
                unknown.append((path, key))
            elif item is not None or not drops_null:
                out[key] = other(item, (path, key), unknown)
            elif substitute is not None:
                out[key] = copy_of(substitute)
        for key, default in defaults:
            if key not in out:
                out[key] = copy_of(default)
        return out

    return shape_object


def _is_scalar(node: Structural) -> bool:
    return node.type in ("string", "boolean", "integer") or node.int_or_string


def _defaults_of(node: Structural) -> list[tuple[str, Any]]:
    return [
        (key, _default_of(prop))
        for key, prop in node.properties.items()
        if prop.default is not MISSING
    ]


def _other_shape(node: Structural) -> Shape | None:
    """Of keys that are no properties; None: there are no such keys."""
    if isinstance(node.additional, Structural):
        return _shape(node.additional)
    return None if node.additional is None else _empty
