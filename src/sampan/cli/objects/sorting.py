"""--sort-by: objects and rows by a field.

Job: order by what a JSONPath finds; numbers as numbers, quantities as quantities.
Invariant: what kubectl cannot sort is refused as it refuses it, in its log's words.
"""

import functools
from typing import Any

from sampan.api import quantity
from sampan.api.objects import Obj
from sampan.cli.errors import CliError, Quiet
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import Info
from sampan.cli.printers.jsonpath import JsonPathError, Template, relax
from sampan.cli.session import Session

INSERTION = 12  # up to so many Go sorts by insertion, which keeps the order of equal ones
_GO_TYPES = {dict: "map[string]interface {}", list: "[]interface {}", bool: "bool"}


class _Unsortable(Exception):
    """Of this Go type."""


def sorted_infos(session: Session, infos: list[Info], field: str) -> list[Info]:
    try:
        path = relax(field)
        template = Template(path)
        values = [_first(template, info.obj) for info in infos]
    except JsonPathError as error:
        raise CliError(str(error)) from error
    if all(value is _NOTHING for value in values):
        raise _not_found(path)
    order = _order(session, values, path, "*unstructured.Unstructured")
    return [infos[at] for at in order]


def sorted_tables(
    session: Session, parts: list[tuple[ApiResource, Obj]], field: str
) -> list[tuple[ApiResource, Obj]]:
    """Rows of one table; several kubectl looks at as objects, and finds nothing in them."""
    try:
        path = relax(field)
    except (JsonPathError, CliError):
        path = field
    if len(parts) > 1 and all(item.get("kind") == "Table" for _, item in parts):
        raise _not_found(path)
    return [(resource, _sorted_rows(session, item, path)) for resource, item in parts]


def _sorted_rows(session: Session, table: Obj, path: str) -> Obj:
    """Of a table that cannot be sorted nothing is shown, as kubectl does it."""
    rows = table.get("rows") or []
    if len(rows) < 2:
        return table
    try:
        template = Template(path)
        values = [_first(template, row.get("object") or {}) for row in rows]
    except JsonPathError:
        return {**table, "rows": []}
    if all(value is _NOTHING for value in values):
        return {**table, "rows": []}
    order = _order(session, values, path, "[][][]reflect.Value")
    return {**table, "rows": [rows[at] for at in order]}


_NOTHING = object()


def _not_found(path: str) -> CliError:
    return CliError(f'couldn\'t find any field with path "{path}" in the list of objects')


def _first(template: Template, obj: Obj) -> Any:
    values = template.values(obj)
    return values[0] if values else _NOTHING


def _order(session: Session, values: list[Any], path: str, holder: str) -> list[int]:
    """Positions, in order. Whoever has no value comes first."""
    order = list(range(len(values)))
    try:
        if len(values) <= INSERTION:
            for end in range(1, len(order)):
                at = end
                while at > 0 and _is_less(values[order[at]], values[order[at - 1]]):
                    order[at], order[at - 1] = order[at - 1], order[at]
                    at -= 1
            return order

        def compare(left: int, right: int) -> int:
            if _is_less(values[left], values[right]):
                return -1
            return 1 if _is_less(values[right], values[left]) else 0

        return sorted(order, key=functools.cmp_to_key(compare))
    except _Unsortable as error:
        session.klog(
            "F", "sorter.go:309",
            f"Field {path} in {holder} is an unsortable type: interface, err: {error}",
        )  # fmt: skip
        raise Quiet(1) from error


def _is_less(left: Any, right: Any) -> bool:
    if left is _NOTHING:
        return True
    if right is _NOTHING:
        return False
    if left is None or right is None:
        return left is None and right is not None
    if isinstance(left, bool | dict | list):
        raise _Unsortable(f"unsortable type: {_GO_TYPES[type(left)]}")
    if isinstance(left, str) != isinstance(right, str) or isinstance(right, bool | dict | list):
        raise _Unsortable("unsortable interface: interface")
    if not isinstance(left, str):
        return bool(left < right)
    try:
        return bool(quantity.parse(left).as_float() < quantity.parse(right).as_float())
    except (quantity.QuantityError, ValueError):
        return bool(left < right)
