"""The columns that a CustomResourceDefinition asks for.

Job: additionalPrinterColumns → a printer; values found by JSONPath. Pure.
Invariant: what is not there, or is not of the column's type, is an empty cell.
"""

from collections.abc import Iterator
from typing import Any

from sampan.api.json_path.parser import JsonPathError
from sampan.api.json_path.template import JsonPath, cell_text, parse_json_path
from sampan.api.objects import Obj, name_of, seconds_of
from sampan.api.rules.durations import human_duration
from sampan.apiserver.printers.layout import CREATED, NAME, Column, Printer

_AGE = {
    "name": "Age",
    "type": "date",
    "description": CREATED,
    "jsonPath": ".metadata.creationTimestamp",
}


_MOST_VALUES = 10_000  # that the path of one cell may lead to on its way


def custom_printer(columns: list[Obj]) -> Printer:
    wanted = [*_readable(columns or [_AGE])]

    def cells(obj: Obj, now: float) -> list[Any]:
        return [name_of(obj), *(_cell(obj, path, kind, now) for _, path, kind in wanted)]

    return Printer((NAME, *(_column(column) for column, _, _ in wanted)), cells)


def _readable(columns: list[Obj]) -> Iterator[tuple[Obj, JsonPath, str]]:
    """As upstream: those before the first one whose path cannot be read."""
    for column in columns:
        try:
            path = parse_json_path("{" + (column.get("jsonPath") or "") + "}")
        except JsonPathError:
            return
        yield column, path, column.get("type") or ""


def _column(column: Obj) -> Column:
    return Column(
        column.get("name") or "",
        column.get("type") or "",
        column.get("format") or "",
        column.get("priority") or 0,
        column.get("description")
        or f"Custom resource definition column (in JSONPath format): "
        f"{column.get('jsonPath') or ''}",
    )


def _cell(obj: Obj, path: JsonPath, kind: str, now: float) -> Any:
    try:
        results = path.results(obj, most=_MOST_VALUES)
    except JsonPathError:
        return None
    if not results or not results[0]:
        return None
    value = results[0][0]
    match kind:
        case "string":
            return cell_text(value)
        case "integer":
            return int(value) if _is_number(value) else None
        case "number":
            return value if _is_number(value) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return _since(value, now) if isinstance(value, str) else None
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _since(value: str, now: float) -> str:
    if not value:
        return "<unknown>"
    try:
        return human_duration(now - seconds_of(value))
    except ValueError:
        return "<invalid>"
