"""How large the values of a schema may be, as CEL counts them.

Job: a node of a schema → how many elements its values may have, and the fewest bytes that one
    takes in JSON. Pure.
Invariant: where a schema bounds nothing, the bound is what fits into the largest request.
"""

from collections.abc import Mapping

from sampan.api.cel.language.field_names import escape
from sampan.api.cel.language.sizes import Size
from sampan.api.custom.structural import MISSING, Structural
from sampan.core.fast_dataclass import dataclass

LARGEST_REQUEST = 3 * 1024 * 1024
_CHARACTER = 4  # bytes of one, at most
_QUOTES = 2
_LEAST_NUMBER, _LEAST_BOOL = 1, 4
# Most elements, fewest bytes.
_FORMATS = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21)}
_SCALARS = {"integer": _LEAST_NUMBER, "number": _LEAST_NUMBER, "boolean": _LEAST_BOOL}


@dataclass(frozen=True, slots=True)
class Extent:
    """Of one node. Numbers and truth values have no elements."""

    most: int
    least_bytes: int
    fields: "Mapping[str, Extent] | None" = None
    element: "Extent | None" = None
    has_keys: bool = False

    def size_at(self, path: tuple[str, ...]) -> Size | None:
        """Of what a path from `self` or `oldSelf` leads to."""
        if not path:
            return None
        here: Extent | None = self
        for step in path[1:]:
            if here is None:
                return None
            here = here._below(step)
        return None if here is None else Size(0, here.most)

    def _below(self, step: str) -> "Extent | None":
        if step in ("@items", "@values"):
            return self.element
        if step == "@keys":
            return _KEY if self.has_keys else None
        return None if self.fields is None else self.fields.get(step)

    @property
    def most_in_request(self) -> int:
        """How many such values there can be, where nothing else bounds them."""
        return LARGEST_REQUEST // (self.least_bytes + 1)


_KEY = Extent(0, _QUOTES)  # upstream has no bound for keys, and takes none for nothing
_TEXT = Extent(LARGEST_REQUEST - _QUOTES, _QUOTES)
_METADATA = Extent(0, 2, {"name": _TEXT, "generateName": _TEXT})


def extent_of(node: Structural, is_object: bool = False) -> Extent | None:
    """None where expressions cannot speak of it."""
    if node.int_or_string:
        return Extent(_most_characters(node), _LEAST_NUMBER)
    if node.type == "object":
        return _object_extent(node, is_object or node.embedded)
    if node.type == "array":
        inner = None if node.items is None else extent_of(node.items)
        return None if inner is None else _container(node, inner, "maxItems", 1, False)
    if node.type == "string":
        return _text_extent(node)
    least = _SCALARS.get(node.type)
    return None if least is None else Extent(0, least)


def _object_extent(node: Structural, is_object: bool) -> Extent | None:
    if isinstance(node.additional, Structural) and not is_object:
        inner = extent_of(node.additional)
        # Around each value: two quotes, a colon, a comma, and a key.
        return None if inner is None else _container(node, inner, "maxProperties", 6, True)
    required = set(node.schema.get("required") or ())
    fields: dict[str, Extent] = {}
    least = 2
    for key, prop in node.properties.items():
        found = extent_of(prop)
        if found is None:
            continue
        shown = escape(key)
        if shown is not None:
            fields[shown] = found
        if key in required and prop.default is MISSING:
            least += len(key.encode()) + found.least_bytes + 4
    if is_object:
        fields |= {"kind": _TEXT, "apiVersion": _TEXT, "metadata": _METADATA}
    return Extent(0, least, fields)


def _container(node: Structural, inner: Extent, limit: str, around: int, keys: bool) -> Extent:
    most = node.schema.get(limit)
    if most is None:
        most = (LARGEST_REQUEST - 2) // (inner.least_bytes + around)
    return Extent(max(most, 0), 2, element=inner, has_keys=keys)


def _text_extent(node: Structural) -> Extent:
    kind = node.schema.get("format") or ""
    if kind in _FORMATS:
        return Extent(*_FORMATS[kind])
    if kind == "byte":
        most = node.schema.get("maxLength")
        return _TEXT if most is None else Extent(max(most, 0), _QUOTES)
    return Extent(_most_characters(node), _QUOTES)


def _most_characters(node: Structural) -> int:
    most = node.schema.get("maxLength")
    if most is not None:
        return max(int(most), 0) * _CHARACTER
    allowed = node.schema.get("enum")
    if allowed and not node.int_or_string:
        return max(len(item.encode()) if isinstance(item, str) else 0 for item in allowed)
    return _TEXT.most
