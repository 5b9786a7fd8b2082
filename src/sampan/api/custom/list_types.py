"""x-kubernetes-list-type set and map: duplicates.

Job: compile a schema into a walk that finds the duplicates of its set and map lists. Pure.
Invariant: a list is complained about once per item that is there again, at its second place.
"""

from collections.abc import Callable
from typing import Any

import orjson

from sampan.api.custom.structural import Structural, nodes_below
from sampan.api.errors import FieldError, duplicate

Search = Callable[[Any, str, list[FieldError]], None]


def compile_duplicates(root: Structural) -> Search | None:
    """None where no list of the schema is a set or a map: nothing to look for."""
    return _search(root)


def has_duplicates(node: Structural) -> Callable[[Any], bool]:
    """Of a list itself, not of what is inside of it."""
    told = _told_apart(node)

    def test(value: list[Any]) -> bool:
        errors: list[FieldError] = []
        if told is not None:
            _find_duplicates(value, told, "", errors)
        return bool(errors)

    return test


def _search(node: Structural) -> Search | None:
    if not _concerns(node):
        return None
    fields = {key: _search(prop) for key, prop in node.properties.items()}
    wanted = {key: field for key, field in fields.items() if field is not None}
    others = _search(node.additional) if isinstance(node.additional, Structural) else None
    items = _search(node.items) if node.items is not None else None
    told = _told_apart(node)

    def search(value: Any, path: str, errors: list[FieldError]) -> None:
        if type(value) is dict:
            for key, item in value.items():
                found = wanted.get(key)
                if found is not None:
                    found(item, f"{path}.{key}" if path else key, errors)
                elif others is not None and key not in fields:
                    others(item, f"{path}[{key}]", errors)
        elif type(value) is list:
            if told is not None:
                _find_duplicates(value, told, path, errors)
            if items is not None:
                for at, item in enumerate(value):
                    items(item, f"{path}[{at}]", errors)

    return search


def _concerns(node: Structural) -> bool:
    return node.list_type in ("set", "map") or any(_concerns(item) for item in nodes_below(node))


def _told_apart(node: Structural) -> Callable[[Any], Any] | None:
    if node.list_type == "set":
        return lambda item: item
    if node.list_type == "map":
        keys = node.map_keys
        return lambda item: (
            {key: item[key] for key in keys if key in item} if type(item) is dict else item
        )
    return None


def _find_duplicates(
    items: list[Any], told: Callable[[Any], Any], path: str, errors: list[FieldError]
) -> None:
    seen: dict[Any, int] = {}
    for at, item in enumerate(items):
        value = told(item)
        mark = value if type(value) is str else orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        count = seen[mark] = seen.get(mark, 0) + 1
        if count == 2:  # the third time nothing new is learnt
            errors.append(duplicate(f"{path}[{at}]", _in_order(value)))


def _in_order(value: Any) -> Any:
    return dict(sorted(value.items())) if type(value) is dict else value
