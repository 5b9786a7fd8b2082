"""The columns that a CustomResourceDefinition asks for.

Job: additionalPrinterColumns → a printer; values found by JSONPath. Pure.
Invariant: what is not there, or is not of the column's type, is an empty cell.
"""

from typing import Any

import orjson

from sampan.api.objects import Obj, name_of, seconds_of
from sampan.api.rules.durations import human_duration
from sampan.api.rules.json_path import JsonPath, NotJsonPath, parse_json_path
from sampan.apiserver.printers.layout import CREATION_TEXT, NAME, Column, Printer

_AGE = {
    "name": "Age",
    "type": "date",
    "description": CREATION_TEXT,
    "jsonPath": ".metadata.creationTimestamp",
}


def custom_printer(columns: list[Obj]) -> Printer:
    wanted = columns or [_AGE]
    paths = [_path(item.get("jsonPath") or "") for item in wanted]
    types = [item.get("type") or "" for item in wanted]

    def cells(obj: Obj, now: float) -> list[Any]:
        found = [_cell(obj, path, kind, now) for path, kind in zip(paths, types, strict=True)]
        return [name_of(obj), *found]

    return Printer((NAME, *(_column(item) for item in wanted)), cells)


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


def _path(text: str) -> JsonPath | None:
    try:
        return parse_json_path(text)
    except NotJsonPath:
        return None


def _cell(obj: Obj, path: JsonPath | None, kind: str, now: float) -> Any:
    if path is None:
        return None
    found = path.find(obj)
    if not found or found[0] is None:
        return None
    value = found[0]
    match kind:
        case "string":
            return value if isinstance(value, str) else _text(found)
        case "integer":
            return _integer(value)
        case "number":
            return value if _is_number(value) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return _since(value, now)
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(value: Any) -> Any:
    return int(value) if _is_number(value) else None


def _since(value: Any, now: float) -> str:
    try:
        return human_duration(now - seconds_of(value))
    except (TypeError, ValueError):
        return "<invalid>"


def _text(found: list[Any]) -> str:
    value = found[0]
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else _plain(value)


def _plain(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
