"""Field types of a custom kind for server-side apply, from its structural schema.

Job: a schema → Node; where a schema keeps what it does not know, values are owned by their keys.
    Pure.
Invariant: an object's own part of the schema decides; nothing here depends on the object.

As upstream's schemaconv: what keeps unknown fields keeps them all the way down; an object of which
nothing is said may have any field; a text with a format may be any scalar.
"""

from sampan.api.apply.field_types import (
    BOOLEAN,
    DEDUCED,
    NUMERIC,
    STRING,
    UNTYPED,
    KeyedList,
    Leaf,
    Map,
    Node,
    Struct,
)
from sampan.api.custom.structural import MISSING, Structural

_SCALARS = {"integer": NUMERIC, "number": NUMERIC, "boolean": BOOLEAN}


def custom_root(root: Structural, metadata: Node) -> Node:
    """Of a whole object."""
    struct = _Custom(metadata).struct(root, root.preserve, frozenset({"metadata"}))
    struct.add("apiVersion", STRING)
    struct.add("kind", STRING)
    struct.add("metadata", metadata)
    return struct


class _Custom:
    def __init__(self, metadata: Node) -> None:
        self._metadata = metadata  # of the object, and of objects that are embedded in it

    def struct(self, node: Structural, keeps: bool, always: frozenset[str] = frozenset()) -> Struct:
        """`keeps`: the schema, or one above it, keeps what it does not know."""
        struct = Struct(always, self._element(node, keeps))
        for key, prop in node.properties.items():
            struct.add(key, self._node(prop, keeps))
        if node.embedded:
            struct.add("apiVersion", STRING)
            struct.add("kind", STRING)
            struct.add("metadata", self._metadata)
        return struct

    def _element(self, node: Structural, keeps: bool) -> Node | None:
        if isinstance(node.additional, Structural):
            return self._node(node.additional, keeps)
        if node.additional is None:
            return DEDUCED if keeps or not (node.properties or node.embedded) else None
        return DEDUCED if node.additional else None

    def _node(self, node: Structural, keeps: bool) -> Node:
        keeps = keeps or node.preserve
        if node.type == "array":
            return self._list(node, keeps)
        if node.type == "object":
            return self._object(node, keeps)
        if node.type == "string":
            return UNTYPED if node.schema.get("format") not in (None, "", "byte") else STRING
        return _SCALARS.get(node.type, DEDUCED)

    def _object(self, node: Structural, keeps: bool) -> Node:
        if isinstance(node.additional, Structural) and not node.properties:
            found: Node = Map(self._node(node.additional, keeps))
        else:
            found = self.struct(node, keeps)
        return Leaf("map", found) if node.map_type == "atomic" else found

    def _list(self, node: Structural, keeps: bool) -> Node:
        if node.items is None:
            return Leaf("list", DEDUCED)
        element = self._node(node.items, keeps)
        if node.list_type == "set":
            return KeyedList(element)
        if node.list_type != "map":
            return Leaf("list", element)
        fields = node.items.properties
        defaults = {
            key: fields[key].default
            for key in node.map_keys
            if key in fields and fields[key].default is not MISSING
        }
        return KeyedList(element, node.map_keys, defaults)
