"""--sort-by: objects and rows by a field.

Job: order by what a JSONPath finds; numbers as numbers, times as times, names as people count.
"""

from typing import Any

from sampan.api import quantity
from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.printers.jsonpath import JsonPathError, Template, relax
from sampan.cli.printers.yaml_text import natural_key


def sorted_objects(objects: list[Obj], field: str) -> list[Obj]:
    template = _template(field)
    return sorted(objects, key=lambda obj: _key(_first(template, obj)))


def sorted_rows(table: Obj, field: str) -> Obj:
    """Rows whose objects all lack the field are not shown, as kubectl does it."""
    rows = table.get("rows") or []
    try:
        template = _template(field)
    except CliError:
        return {**table, "rows": []}
    found = [(_first(template, row.get("object") or {}), row) for row in rows]
    if found and all(value is None for value, _ in found):
        return {**table, "rows": []}
    return {**table, "rows": [row for _, row in sorted(found, key=lambda pair: _key(pair[0]))]}


def _template(field: str) -> Template:
    return Template(relax(field))


def _first(template: Template, obj: Obj) -> Any:
    try:
        values = template.values(obj)
    except JsonPathError:
        return None
    return values[0] if values else None


def _key(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    if isinstance(value, (bool, int, float)):
        return (1, value)
    text = str(value)
    try:
        return (2, quantity.parse(text).as_float())
    except (quantity.QuantityError, ValueError):
        return (3, natural_key(text))
