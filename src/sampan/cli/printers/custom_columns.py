"""-o custom-columns: a header and a path for each column.

Job: parse the specification; a row per object.
"""

from sampan.api.go_text import go_value
from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.printers.jsonpath import JsonPathError, Template, relax
from sampan.cli.printers.tabs import align
from sampan.core.fast_dataclass import dataclass

_EXPECTED = (
    "Expected format is one line of space separated headers, one line of space separated column "
    "specs."
)


@dataclass(frozen=True, slots=True)
class Column:
    header: str
    template: Template


class Printer:
    """A header once, and a row per object."""

    def __init__(self, columns: list[Column], *, headers: bool) -> None:
        self._columns, self._headers = columns, headers

    def text(self, obj: Obj, label: str = "") -> str:
        items = obj.get("items")
        objects = items if isinstance(items, list) else [obj]
        try:
            rows = [[_cell(column, item) for column in self._columns] for item in objects]
        except JsonPathError as error:
            raise CliError(str(error)) from error
        if self._headers:
            rows.insert(0, [column.header for column in self._columns])
            self._headers = False
        return align(rows)


def printer_of(name: str, spec: str, *, headers: bool) -> Printer:
    """For `custom-columns` and `custom-columns-file`."""
    if not spec:
        raise CliError("custom-columns format specified but no custom columns given")
    if name == "custom-columns":
        return Printer([_parse(part) for part in spec.split(",")], headers=headers)
    return Printer(_from_file(spec), headers=True)


def _parse(part: str) -> Column:
    header, colon, path = part.partition(":")
    if not colon:
        raise CliError(
            f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>"
        )
    return _column(header, path)


def _column(header: str, path: str) -> Column:
    try:
        return Column(header, Template(relax(path)))
    except JsonPathError as error:
        raise CliError(str(error)) from error


def _from_file(path: str) -> list[Column]:
    try:
        with open(path) as file:
            lines = file.read().splitlines()
    except OSError as error:
        text = (error.strerror or str(error)).lower()
        raise CliError(f"error reading template {path}, open {path}: {text}") from error
    for at, what in enumerate(("header", "spec")):
        if len(lines) <= at:
            raise CliError(f"invalid template, missing {what} line. {_EXPECTED}")
    headers, paths = lines[0].split(), lines[1].split()
    if len(headers) != len(paths):
        raise CliError(
            f"number of headers ({len(headers)}) and field specifications ({len(paths)}) don't "
            "match"
        )
    return [_column(header, text) for header, text in zip(headers, paths, strict=True)]


def _cell(column: Column, obj: Obj) -> str:
    values = column.template.values(obj)
    return ",".join(map(go_value, values)) if values else "<none>"
