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

Printer = Callable[[Obj], str]


class ObjectPrinter:
    """Objects in one format, one after the other."""

    def __init__(
        self, values: Values, *, typed: bool = False, formats: tuple[str, ...] = FORMATS
    ) -> None:
        """`typed`: what kubectl holds as a Go struct, printed in the struct's order."""
        self.format, self._argument = _split(values.text("output"), values.text("template"))
        if self.format not in formats and self.format:
            raise unknown_format(values.text("output"), formats)
        self._typed = typed
        self._managed = bool(values["show-managed-fields"])
        self._allow_missing = bool(values["allow-missing-template-keys"])
        self._count = 0
        self._template: Any = None

    def text(self, obj: Obj, label: str = "") -> str:
        """`label` is what -o name says: `pod/web`."""
        if not self._managed and self.format in ("json", "yaml", "kyaml"):
            obj = without_managed_fields(obj)
        match self.format:
            case "name":
                return label + "\n"
            case "json":
                from sampan.cli.printers.json_text import to_json

                return to_json(self._in_order(obj), ordered=self._typed)
            case "yaml":
                from sampan.cli.printers.yaml_text import to_yaml

                self._count += 1
                lead = "---\n" if self._count > 1 else ""
                return lead + to_yaml(self._in_order(obj))
            case "kyaml":
                from sampan.cli.printers.kyaml_text import to_kyaml

                return to_kyaml(self._in_order(obj), ordered=self._typed)
            case "jsonpath" | "jsonpath-file" | "jsonpath-as-json":
                return self._jsonpath(obj)
            case _:
                return self._go_template(obj)

    def _in_order(self, obj: Obj) -> Obj:
        if not self._typed:
            return obj
        from sampan.cli.printers.go_order import in_go_order

        return in_go_order(obj)

    def _jsonpath(self, obj: Obj) -> str:
        from sampan.cli.printers import jsonpath

        if self._template is None:
            text = self._argument
            if self.format == "jsonpath-file":
                text = read_template(text)
            if not text:
                raise CliError("template format specified but no template given")
            try:
                self._template = jsonpath.Template(text, allow_missing=self._allow_missing)
            except jsonpath.JsonPathError as error:
                raise CliError(f"error parsing jsonpath {text}, {error}") from error
        try:
            if self.format == "jsonpath-as-json":
                import json

                values = self._template.values(obj)
                return json.dumps(values, indent=4, ensure_ascii=False, sort_keys=True) + "\n"
            return str(self._template.render(obj))
        except jsonpath.JsonPathError as error:
            raise CliError(_template_failure(self._template.text, str(error), obj)) from error

    def _go_template(self, obj: Obj) -> str:
        from sampan.cli.printers import go_template

        if self._template is None:
            text = self._argument
            if self.format in ("go-template-file", "templatefile"):
                text = read_template(text)
            if not text:
                raise CliError("template format specified but no template given")
            self._template = go_template.Template(text, allow_missing=self._allow_missing)
        if not self._managed:
            obj = without_managed_fields(obj)
        return str(self._template.render(obj))


def _split(output: str, template: str) -> tuple[str, str]:
    name, equals, argument = output.partition("=")
    if not output and template:
        return "go-template", template
    if name in TEMPLATES:
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
        f"\t\t{go_syntax(obj)}\n\n"
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
