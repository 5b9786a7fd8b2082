"""-o custom-columns: a header and a path for each column.

Job: parse the specification; a row per object.
"""

from typing import Any

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.printers.jsonpath import Template, go_float, relax
from sampan.cli.printers.tabs import align
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    header: str
    template: Template


def parse(spec: str) -> list[Column]:
    if not spec:
        raise CliError("custom-columns format specified but no custom columns given")
    columns = []
    for part in spec.split(","):
        header, colon, path = part.partition(":")
        if not colon:
            raise CliError(
                f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>"
            )
        columns.append(Column(header, Template(relax(path))))
    return columns


def from_file(path: str) -> list[Column]:
    try:
        with open(path) as file:
            lines = file.read().splitlines()
    except OSError as error:
        text = (error.strerror or str(error)).lower()
        raise CliError(f"error reading template {path}, open {path}: {text}") from error
    headers, paths = lines[0].split(), lines[1].split() if len(lines) > 1 else []
    if len(headers) != len(paths):
        raise CliError(f"number of headers ({len(headers)}) doesn't match columns ({len(paths)})")
    return [
        Column(header, Template(relax(text))) for header, text in zip(headers, paths, strict=True)
    ]


def text_of(columns: list[Column], objects: list[Obj], *, headers: bool = True) -> str:
    rows = [[_cell(column, obj) for column in columns] for obj in objects]
    if headers:
        rows.insert(0, [column.header for column in columns])
    return align(rows)


def _cell(column: Column, obj: Obj) -> str:
    values = column.template.values(obj)
    return ",".join(go_text(value) for value in values) if values else "<none>"


def go_text(value: Any) -> str:
    """As Go's %v prints JSON data."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_text(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_float(value)
    return str(value)
