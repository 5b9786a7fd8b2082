"""JSONPath of the client: templates of `-o jsonpath`, and the bare paths of other flags.

Job: what api/json_path/template.py finds and prints, with errors that end a command.
"""

import re
from typing import Any

from sampan.api.json_path import parser, template
from sampan.api.json_path.template import value_text
from sampan.cli.errors import CliError

__all__ = ["JsonPathError", "Template", "relax", "value_text"]


class JsonPathError(CliError):
    """The template cannot be parsed or does not fit the data."""


def relax(expression: str) -> str:
    """`metadata.name`, `.metadata.name` and `{.metadata.name}` mean the same."""
    if not expression:
        return expression
    match = re.fullmatch(r"\{\.?([^{}]+)\}|\.?([^{}]+)", expression)
    if match is None:
        raise CliError(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or "
            "'{name1.name2}' or '{.name1.name2}'"
        )
    return "{." + (match.group(1) or match.group(2)) + "}"


class Template:
    def __init__(self, text: str, *, allow_missing: bool = True) -> None:
        self.text = text
        self._allow_missing = allow_missing
        try:
            self._path = template.parse_json_path(text)
        except parser.JsonPathError as error:
            raise JsonPathError(str(error)) from error

    def render(self, data: Any) -> str:
        return "".join(map(template.printed, self.results(data)))

    def results(self, data: Any) -> list[list[Any]]:
        """One list of values per node of the template; text is a list of itself."""
        try:
            return self._path.results(data, allow_missing=self._allow_missing)
        except parser.JsonPathError as error:
            raise JsonPathError(str(error)) from error

    def as_json(self, data: Any) -> str:
        """One array per node of the template."""
        from sampan.cli.printers.json_text import to_json

        return "".join(to_json(values) for values in self.results(data))

    def values(self, data: Any) -> list[Any]:
        return [value for values in self.results(data) for value in values]
