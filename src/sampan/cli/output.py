"""`-o`: from a format's name to the text of an object.

Job: choose the printer, strip what is not shown, and write objects one after the other.
Invariant: an unknown format is refused with the list of those there are.
"""

from collections.abc import Callable
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values

TEMPLATES = (
    "go-template", "go-template-file", "jsonpath", "jsonpath-as-json", "jsonpath-file",
    "template", "templatefile",
)  # fmt: skip
FORMATS = tuple(sorted((*TEMPLATES, "json", "kyaml", "name", "yaml")))

PRINT_FLAGS = (
    Flag(
        "output",
        short="o",
        usage="Output format. One of: (json, yaml, kyaml, name, go-template, go-template-file, "
        "template, templatefile, jsonpath, jsonpath-as-json, jsonpath-file).",
    ),
    Flag("template", usage="Template string, or a file with one, for -o go-template and the like."),
    Flag(
        "allow-missing-template-keys",
        "bool",
        True,
        "Ignore errors in templates when a field or map key is missing.",
        bare="true",
    ),
    Flag(
        "show-managed-fields",
        "bool",
        False,
        "Keep the managedFields when printing objects in JSON or YAML.",
        bare="true",
    ),
)
# For verbs that print YAML where nobody says otherwise.
YAML_FLAGS = tuple(
    Flag("output", short="o", default="yaml", usage=flag.usage) if flag.name == "output" else flag
    for flag in PRINT_FLAGS
)

Printer = Callable[[Obj], str]


class ObjectPrinter:
    """Objects in one format, one after the other."""

    def __init__(
        self,
        values: Values,
        *,
        typed: bool = False,
        ordered: bool = False,
        formats: tuple[str, ...] = FORMATS,
    ) -> None:
        """`typed`: what kubectl holds as a Go struct, printed in the struct's order; `ordered`:
        what has that order already."""
        self.format, self._argument = _split(values)
        if self.format not in formats and self.format:
            raise unknown_format(values.text("output"), formats)
        self._typed, self._ordered = typed, typed or ordered
        self._managed = bool(values["show-managed-fields"])
        self._allow_missing = bool(values["allow-missing-template-keys"])
        self._count = 0
        self._template: Any = self._compiled()

    def text(self, obj: Obj, label: str = "") -> str:
        """`label` is what -o name says: `pod/web`."""
        if not self._managed and self.format in ("json", "yaml", "kyaml"):
            obj = without_managed_fields(obj)
        match self.format:
            case "name":
                return label + "\n"
            case "json":
                from sampan.cli.printers.json_text import to_json

                return to_json(self._in_order(obj), ordered=self._ordered)
            case "yaml":
                from sampan.cli.printers.yaml_text import to_yaml

                self._count += 1
                lead = "---\n" if self._count > 1 else ""
                return lead + to_yaml(self._in_order(obj))
            case "kyaml":
                from sampan.cli.printers.kyaml_text import to_kyaml

                return to_kyaml(self._in_order(obj), ordered=self._ordered)
            case "jsonpath" | "jsonpath-file" | "jsonpath-as-json":
                return self._jsonpath(obj)
            case _:
                return self._go_template(obj)

    def event_text(self, event: str, obj: Obj, label: str) -> str:
        """What a watch told, with its type; JSON on one line."""
        if self.format == "name":
            return self.text(obj, label)
        if not self._managed and self.format in ("json", "yaml", "kyaml"):
            obj = without_managed_fields(obj)
        if self.format == "json":
            from sampan.cli.printers.json_text import compact

            return f'{{"type":"{event}","object":{compact(obj, ordered=False)}}}\n'
        return self.text({"type": event, "object": obj})

    def _in_order(self, obj: Obj) -> Obj:
        if not self._typed:
            return obj
        from sampan.cli.printers.go_order import in_go_order

        return in_go_order(obj)

    def _compiled(self) -> Any:
        """The template, read and parsed: what is wrong with it is told before anything is done."""
        if self.format not in TEMPLATES:
            return None
        text = self._argument
        if not text:
            raise CliError("template format specified but no template given")
        if self.format in ("go-template-file", "templatefile", "jsonpath-file"):
            text = read_template(text)
        if self.format.startswith("jsonpath"):
            from sampan.cli.printers import jsonpath

            try:
                return jsonpath.Template(text, allow_missing=self._allow_missing)
            except jsonpath.JsonPathError as error:
                raise CliError(f"error parsing jsonpath {text}, {error}") from error
        from sampan.api.go_template.execution import Template
        from sampan.api.go_template.parser import TemplateError

        try:
            return text, Template(text, allow_missing=self._allow_missing)
        except TemplateError as error:
            raise CliError(f"error parsing template {text}, {error}") from error

    def _jsonpath(self, obj: Obj) -> str:
        from sampan.cli.printers import jsonpath

        try:
            if self.format == "jsonpath-as-json":
                return str(self._template.as_json(obj))
            return str(self._template.render(obj))
        except jsonpath.JsonPathError as error:
            raise CliError(_template_failure(self._template.text, str(error), obj)) from error

    def _go_template(self, obj: Obj) -> str:
        text, template = self._template
        written, why = template.execute(obj)
        if why:
            raise TemplateFailure(text, why, written, self._in_order(obj), ordered=self._ordered)
        return str(written)


class TemplateFailure(CliError):
    """A Go template that failed; what it wrote, and all there is to know, goes to standard output:
    easier to look at there."""

    def __init__(self, text: str, why: str, written: str, obj: Obj, *, ordered: bool) -> None:
        from sampan.api.go_quoting import quoted
        from sampan.api.go_template.values import data_of, text_of
        from sampan.cli.printers.json_text import compact

        super().__init__(f"error executing template {quoted(text)}: {why}")
        self.output = (
            f"{written}Error executing template: {why}. Printing more information for debugging "
            f"the template:\n\ttemplate was:\n\t\t{text}\n\traw data was:\n"
            f"\t\t{compact(obj, ordered=ordered)}\n"
            f"\tobject given to template engine was:\n\t\t{text_of(data_of(obj))}\n\n"
        )


def _split(values: Values) -> tuple[str, str]:
    """The format and its template. A template that is given by its own flag stands for its format,
    unless another one is asked for."""
    output, template = values.text("output"), values.text("template")
    if template and not values.is_set("output"):
        return "go-template", template
    if output.lower() in ("", "json", "yaml", "kyaml", "name"):
        return output.lower(), ""
    name, equals, argument = output.partition("=")
    if name in TEMPLATES and not (equals and template):
        return name, argument if equals else template
    return output, ""


def read_template(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        text = f"error reading --template {path}, open {path}: no such file or directory"
        raise CliError(text) from None
    except OSError as error:
        raise CliError(f"error reading --template {path}, {error.strerror}") from error


def unknown_format(output: str, formats: tuple[str, ...] = FORMATS) -> CliError:
    allowed = ",".join(formats)
    return CliError(
        f'unable to match a printer suitable for the output format "{output}", '
        f"allowed formats are: {allowed}"
    )


def without_managed_fields(obj: Obj) -> Obj:
    items = obj.get("items")
    if isinstance(items, list) and str(obj.get("kind")).endswith("List"):
        return {**obj, "items": [without_managed_fields(item) for item in items]}
    meta = obj.get("metadata")
    if isinstance(meta, dict) and "managedFields" in meta:
        kept = {key: value for key, value in meta.items() if key != "managedFields"}
        return {**obj, "metadata": kept}
    return obj


def _template_failure(template: str, why: str, obj: Obj) -> str:
    return (
        f'error executing jsonpath "{template}": Error executing template: {why}. '
        "Printing more information for debugging the template:\n"
        f"\ttemplate was:\n\t\t{template}\n\tobject given to jsonpath engine was:\n"
        f"\t\t{go_syntax(obj)}\n\n\n"
    )


def go_syntax(value: Any) -> str:
    """As Go's %#v prints JSON data."""
    if isinstance(value, dict):
        inner = ", ".join(f"{go_syntax(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(go_syntax(item) for item in value)}}}"
    if isinstance(value, str):
        import json

        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
