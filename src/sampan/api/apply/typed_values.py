"""What an apply does with values of a type: check, merge, name and take away their fields.

Job: `problems`, `merged`, `set_of`, `less`: each walks a value by its Node. Pure.
Invariant: values that come in are not changed; what comes out may share parts with them.

As upstream's structured-merge-diff. MISSING is no value at all, which null is not: a configuration
that says null speaks for the field, and an empty list or map that was asked for stays empty.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sampan.api.apply.field_sets import FieldSet, is_member, member, path_text
from sampan.api.apply.field_types import Deduced, KeyedList, Leaf, Map, Node, Struct
from sampan.api.go_text import go_syntax, go_type_name, go_value
from sampan.api.objects import Obj

MISSING: Any = object()


# --- problems


def problems(node: Node, value: Any, path: str = "") -> Iterator[str]:
    """Why a configuration cannot be merged."""
    if value is None or isinstance(node, Deduced):
        return
    if isinstance(node, Leaf):
        yield from _leaf_problems(node, value, path)
    elif isinstance(node, KeyedList):
        yield from _list_problems(node, value, path)
    else:
        yield from _map_problems(node, value, path)


def _leaf_problems(node: Leaf, value: Any, path: str) -> Iterator[str]:
    kind = node.kind
    if kind == "map":
        assert node.inner is not None
        yield from _map_problems(node.inner, value, path)
    elif kind == "list":
        assert node.inner is not None
        if not isinstance(value, list):
            yield f"{path}: expected list, got &{{{go_value(value)}}}"
            return
        for index, item in enumerate(value):
            yield from problems(node.inner, item, f"{path}[{index}]")
    elif kind == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        yield f"{path}: expected numeric (int or float), got {go_type_name(value)}"
    elif kind == "string" and not isinstance(value, str):
        yield f"{path}: expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"
    elif kind == "boolean" and not isinstance(value, bool):
        yield f"{path}: expected boolean, got &{{{go_value(value)}}}"
    elif kind == "untyped" and isinstance(value, dict | list):
        yield f"{path}: expected any scalar, got &{{{go_value(value)}}}"


def _list_problems(node: KeyedList, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got &{{{go_value(value)}}}"
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        wrong = _item_problem(node, item)
        if wrong:
            yield f"{path}: element {index}: {wrong}"
            return
        label = node.label(item)
        if label in seen:
            yield f"{path}: duplicate entries for key {path_text((label,))}"
        seen.add(label)
        yield from problems(node.element, item, path + path_text((label,)))


def _item_problem(node: KeyedList, item: Any) -> str:
    if not node.given_keys:
        if isinstance(item, dict):
            return "associative list without keys has an element that's a map type"
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        if item is None:
            return "associative list without keys has an element that's an explicit null"
        return ""
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    if not any(key in item or node.defaults.get(key) is not None for key in node.given_keys):
        keys = " ".join(f'"{key}"' for key in node.given_keys)
        return (
            f"associative list with keys has an element that omits all key fields [{keys}] (and "
            "doesn't have default values for any key fields)"
        )
    return ""


def _map_problems(node: Node, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected map, got &{{{go_value(value)}}}"
        return
    assert isinstance(node, Struct | Map), node
    for key, item in value.items():
        inner = node.field(key)
        if inner is None:
            yield f"{path}.{key}: field not declared in schema"
            return
        yield from problems(inner, item, f"{path}.{key}")


# --- merged


def merged(node: Node, live: Any, config: Any) -> Any:
    """The live value with the configuration put over it; MISSING where nothing is left to say."""
    chosen = live if config is MISSING else config
    if isinstance(node, Deduced):
        node = node.as_found(chosen)
    if isinstance(node, KeyedList):
        left, right = _items_of(live), _items_of(config)
        return (_merged_items(node, left, right) or MISSING) if left or right else chosen
    if isinstance(node, Struct | Map):
        return _merged_fields(node, live, config)
    return chosen


def _merged_fields(node: Struct | Map, live: Any, config: Any) -> Any:
    left, right = _fields_of(live), _fields_of(config)
    if not left and not right:
        return live if config is MISSING else config
    out: Obj = {}
    for key, value in left.items():
        out[key] = value if key not in right else _merged_field(node, key, value, right[key])
    for key, value in right.items():
        if key not in left:
            out[key] = _merged_field(node, key, MISSING, value)
    out = {key: value for key, value in out.items() if value is not MISSING}
    return out or MISSING


def _merged_field(node: Struct | Map, key: str, live: Any, config: Any) -> Any:
    inner = node.field(key)
    return config if inner is None else merged(inner, live, config)


def _merged_items(node: KeyedList, live: list[Any], config: list[Any]) -> list[Any]:
    """The configuration's order for its own items; what only the live list has stays where it is
    among them."""
    rights = [(node.label(item), item) for item in config]
    lefts = deque((node.label(item), item) for item in live)
    of_left, of_right = _unrepeated(lefts), dict(rights)
    shared = deque(label for label, _ in rights if label in of_left)  # not yet placed
    out: list[Any] = []
    placed: set[str] = set()
    for label, item in rights:
        out += _live_before(label, lefts, of_right, placed, shared)
        placed.add(label)
        out.append(merged(node.element, of_left.get(label, MISSING), item))
        if shared and shared[0] == label:
            shared.popleft()
    out += [item for label, item in lefts if label not in of_right]
    return [item for item in out if item is not MISSING]


def _unrepeated(items: deque[tuple[str, Any]]) -> dict[str, Any]:
    """An item that is there twice is not merged with anything: it is null."""
    found: dict[str, Any] = {}
    for label, item in items:
        found[label] = None if label in found else item
    return found


def _live_before(
    label: str,
    lefts: deque[tuple[str, Any]],
    of_right: Mapping[str, Any],
    placed: set[str],
    shared: deque[str],
) -> list[Any]:
    """What of the live list comes before the configuration's next item; taken from `lefts`."""
    out = []
    while lefts:
        own, item = lefts[0]
        if own not in of_right:
            out.append(item)
        elif own == label or not shared or shared[0] == own:
            if own == label or own in placed:
                lefts.popleft()
            break
        lefts.popleft()  # it is told already, or the configuration places it later
    return out


# --- set_of


def set_of(root: Node, obj: Obj) -> FieldSet:
    """What a configuration that says this speaks for."""
    return _set_of(root, obj) or {}


def _set_of(node: Node, value: Any) -> FieldSet | None:
    """{} is the field itself, None nothing."""
    if isinstance(node, Deduced):
        node = node.as_found(value)
    if isinstance(node, KeyedList):
        return _items_set(node, _items_of(value))
    if isinstance(node, Struct | Map):
        return _fields_set(node, _fields_of(value))
    return {}


def _fields_set(node: Struct | Map, value: Obj) -> FieldSet | None:
    out: FieldSet = {}
    for key, item in value.items():
        inner = node.field(key)
        if inner is None:
            continue
        found = _set_of(inner, item)
        is_declared = isinstance(node, Struct) and key in node.fields
        if item is None or item == {} or not is_declared:
            found = member(found or {})
        if found is not None:
            out[f"f:{key}"] = found
    return out or None


def _items_set(node: KeyedList, items: list[Any]) -> FieldSet | None:
    found: FieldSet = {}
    for item in items:
        label = node.label(item)
        found[label] = {} if label in found else member(_set_of(node.element, item) or {})
    return found or None


# --- less


def less(root: Node, obj: Obj, fields: FieldSet) -> Obj:
    left: Obj = _less(root, obj, fields) or {}
    return left


def _less(node: Node, value: Any, fields: FieldSet) -> Any:
    """The value without these fields and items; null where none is left."""
    if isinstance(node, Deduced):
        node = node.as_found(value)
    if isinstance(node, Leaf):
        return value if node.kind not in ("list", "map") else None
    if isinstance(node, KeyedList):
        return _kept(_items_of(value), fields, node.label, node.element)
    out: Obj = {}
    assert isinstance(node, Struct | Map), node
    for key, item in _fields_of(value).items():
        going = fields.get(f"f:{key}")
        if going is not None:
            if is_member(going):
                continue
            inner = node.field(key)
            item = item if inner is None else _less(inner, item, going)
        out[key] = item
    return out or None


def _kept(
    items: list[Any], fields: FieldSet, label_of: Callable[[Any], str], element: Node
) -> list[Any] | None:
    out: list[Any] = []
    for item in items:
        going = fields.get(label_of(item))
        if going is not None:
            if is_member(going):
                continue
            item = _less(element, item, going)
        out.append(item)
    return out or None


# --- atomics


def atomics(node: Node, value: Any, path: str = "") -> Iterator[str]:
    """Where a configuration would replace a list, a map or a struct as a whole."""
    if isinstance(node, Deduced):
        node = node.as_found(value)
    if isinstance(node, Leaf):
        if isinstance(value, list | dict):
            yield path
    elif isinstance(node, KeyedList):
        for index, item in enumerate(_items_of(value)):
            yield from atomics(node.element, item, f"{path}[{index}]")
    elif isinstance(node, Struct | Map):
        for key, item in _fields_of(value).items():
            inner = node.field(key)
            if inner is not None:
                yield from atomics(inner, item, f"{path}.{key}")


def _fields_of(value: Any) -> Obj:
    return value if type(value) is dict else {}


def _items_of(value: Any) -> list[Any]:
    return value if type(value) is list else []
