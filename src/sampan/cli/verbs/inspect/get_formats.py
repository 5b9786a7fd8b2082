"""In which form `get` asks for objects and prints them.

Job: tables or formats by the flags; what was found apart from what was not.
"""

from typing import TYPE_CHECKING

from sampan.api.errors import ApiError
from sampan.cli.flags import Values
from sampan.cli.objects.builder import Result
from sampan.cli.objects.infos import Form, Info
from sampan.cli.output import FORMATS, ObjectPrinter, unknown_format
from sampan.cli.printers import table

if TYPE_CHECKING:
    from sampan.cli.printers import custom_columns

GET_FORMATS = tuple(sorted((*FORMATS, "custom-columns", "custom-columns-file", "wide")))
CUSTOM = ("custom-columns", "custom-columns-file")


def is_table(values: Values) -> bool:
    """Whether people read it: no format, and no template that would stand for one."""
    return values["output"] == "wide" or not (values["output"] or values["template"])


def form_of(values: Values) -> Form:
    """Tables, where people read them and the server may make them."""
    if not is_table(values) or not values["server-print"]:
        return Form()
    return Form(table.ACCEPT, {"includeObject": "Object"} if values["sort-by"] else {})


def printer_of(values: Values) -> "ObjectPrinter | custom_columns.Printer":
    """Raises what is wrong with the format."""
    output = values.text("output")
    name, equals, rest = output.partition("=")
    if not is_table(values) and name.lower() in CUSTOM:
        spec = rest if equals else values.text("template")
        headers = not values["no-headers"]
        from sampan.cli.printers import custom_columns

        return custom_columns.printer_of(name.lower(), spec, headers=headers)
    values._values["output"] = name.lower() + equals + rest
    if output and name.lower() not in GET_FORMATS:
        raise unknown_format(output, GET_FORMATS)
    return ObjectPrinter(values, formats=GET_FORMATS)


def collected(values: Values, result: Result) -> tuple[list[Info], list[Exception]]:
    infos: list[Info] = []
    failures: list[Exception] = []
    for found in result.visit():
        if isinstance(found, Info):
            infos.append(found)
        elif not (values["ignore-not-found"] and isinstance(found, ApiError) and found.code == 404):
            failures.append(found)
    return infos, failures
