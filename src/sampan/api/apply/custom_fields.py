"""Which fields of a custom kind are owned in which way, from its structural schema.

Job: a schema → Node; where a schema keeps what it does not know, values are owned by their keys.
    Pure.
Invariant: an object's own part of the schema decides; nothing here depends on the object.
"""

from collections.abc import Iterator
from typing import Any

from sampan.api.apply.field_sets import FieldSet, member
from sampan.api.apply.field_types import LEAF, KeyedList, Map, Node, Sets, Struct
from sampan.api.custom.structural import MISSING, Structural
from sampan.api.objects import Obj

_UNDECLARED = "field not declared in schema"


class Deduced:
    """A value that no schema speaks of: maps by their keys, everything else as a whole."""

    def __init__(self) -> None:
        self._map = Map(self)

    def grown(self, value: Any) -> FieldSet:
        return self._map.grown(value) if isinstance(value, dict) else {}

    def compare(self, old: Any, new: Any) -> Sets:
        if isinstance(old, dict) and isinstance(new, dict):
            return self._map.compare(old, new)
        return LEAF.compare(old, new)

    def set_of(self, value: Any) -> FieldSet | None:
        return self._map.set_of(value) if isinstance(value, dict) else {}

    def merged(self, live: Any, config: Any) -> Any:
        if isinstance(live, dict) and isinstance(config, dict):
            return self._map.merged(live, config)
        return config

    def less(self, value: Any, fields: FieldSet) -> Any:
        return self._map.less(value, fields) if isinstance(value, dict) else value

    def named(self, fields: FieldSet) -> FieldSet:
        return fields

    def problems(self, value: Any, path: str) -> Iterator[str]:
        return iter(())

    def atomics(self, value: Any, path: str) -> Iterator[str]:
        if isinstance(value, list):
            yield path
        elif isinstance(value, dict):
            yield from self._map.atomics(value, path)


DEDUCED = Deduced()


class CustomStruct(Struct):
    """An object with properties; other keys are refused, or owned on their own."""

    def __init__(self, always: frozenset[str], is_open: bool) -> None:
        super().__init__(always)
        self._open = is_open

    def problems(self, value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{path}: expected map, got {value!r}"
            return
        for key in value:
            if key not in self.fields and not self._open:
                yield f"{path}.{key}: {_UNDECLARED}"
        yield from super().problems(value, path)


class OpenStruct(CustomStruct):
    """x-kubernetes-preserve-unknown-fields: what has no schema is there all the same."""

    def __init__(self, always: frozenset[str]) -> None:
        super().__init__(always, True)

    def _known(self, *values: Obj) -> "OpenStruct":
        """With a node for every key of these values."""
        unknown = {key for value in values for key in value if key not in self.fields}
        if not unknown:
            return self
        made = OpenStruct(self._always)
        for key, node in self.fields.items():
            made.add(key, node)
        for key in unknown:
            made.add(key, DEDUCED)
        return made

    def grown(self, value: Obj) -> FieldSet:
        return Struct.grown(self._known(value), value)

    def compare(self, old: Obj, new: Obj) -> Sets:
        return Struct.compare(self._known(old, new), old, new)

    def set_of(self, value: Obj) -> FieldSet | None:
        found = Struct.set_of(self._known(value), value)
        for key in value:
            if found is not None and key not in self.fields and f"f:{key}" in found:
                found[f"f:{key}"] = member(found[f"f:{key}"])
        return found

    def merged(self, live: Obj, config: Obj) -> Obj:
        return Struct.merged(self._known(live, config), live, config)

    def less(self, value: Obj, fields: FieldSet) -> Obj | None:
        return Struct.less(self._known(value), value, fields)


def custom_root(root: Structural, metadata: Node) -> Node:
    """Of a whole object."""
    struct = _struct(root, frozenset({"metadata"}))
    struct.add("apiVersion", LEAF)
    struct.add("kind", LEAF)
    struct.add("metadata", metadata)
    return struct


def _struct(node: Structural, always: frozenset[str] = frozenset()) -> Struct:
    struct = OpenStruct(always) if node.preserve else CustomStruct(always, False)
    for key, prop in node.properties.items():
        struct.add(key, _node(prop))
    if node.embedded:
        struct.add("apiVersion", LEAF)
        struct.add("kind", LEAF)
        struct.add("metadata", DEDUCED)
    return struct


def _node(node: Structural) -> Node:
    if node.type == "array":
        return _list(node)
    if node.type == "object":
        if node.map_type == "atomic":
            return LEAF
        if isinstance(node.additional, Structural):
            return Map(_node(node.additional))
        if node.additional is True:
            return DEDUCED
        return _struct(node)
    return DEDUCED if node.preserve and not node.type else LEAF


def _list(node: Structural) -> Node:
    if node.items is None or node.list_type not in ("set", "map"):
        return LEAF
    if node.list_type == "set":
        return KeyedList(LEAF, (), {}, frozenset())
    fields = node.items.properties
    defaults = {
        key: fields[key].default
        for key in node.map_keys
        if key in fields and fields[key].default is not MISSING
    }
    required = frozenset(key for key in node.map_keys if key not in defaults)
    return KeyedList(_node(node.items), node.map_keys, defaults, required)
