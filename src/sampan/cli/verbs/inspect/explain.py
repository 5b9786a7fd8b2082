"""`explain`: the documentation of fields, from the server's OpenAPI v3.

Job: find the kind's schema, walk the path, print description and fields.
"""

import textwrap
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.session import Session

WIDTH = 78
REF = "#/components/schemas/"


def run(session: Session, values: Values) -> None:
    if not values.arguments:
        session.complain(
            f'You must specify the type of resource to explain. Use "{session.program} '
            'api-resources" for a complete list of supported resources.\n'
        )
        raise UsageError("Required resource not specified.")
    if len(values.arguments) > 1:
        raise UsageError("We accept only this format: explain RESOURCE")
    if values["output"] not in ("plaintext", "plaintext-openapiv2"):
        raise CliError(f"unrecognized format: {values['output']}")
    word, *fields = values.arguments[0].split(".")
    resource, fields = _resource(session, word, fields)
    if values["api-version"]:
        resource = _in_version(session, resource, values.text("api-version"))
    document = _document(session, resource)
    schemas = document["components"]["schemas"]
    schema = _schema_of(schemas, resource)
    session.write(_text(resource, schemas, schema, fields, bool(values["recursive"])))


def _resource(session: Session, word: str, fields: list[str]) -> tuple[ApiResource, list[str]]:
    """The kind may be qualified: `deployments.apps.spec` and `deployments.v1.apps.spec`."""
    for count in range(len(fields), 0, -1):
        candidate = ".".join([word, *fields[:count]])
        try:
            found = session.discovery._lookup(candidate)
        except CliError:
            found = None
        if found is not None and found.group and found.group in candidate:
            return found, fields[count:]
    return session.discovery.find(word), fields


def _in_version(session: Session, resource: ApiResource, version: str) -> ApiResource:
    found = session.discovery.of_kind(version, resource.kind)
    if found is None:
        group, _, number = version.rpartition("/")
        raise CliError(f'couldn\'t find resource for "{group}/{number}, Kind={resource.kind}"')
    return found


def _document(session: Session, resource: ApiResource) -> Obj:
    root = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
    try:
        return session.api.json("GET", f"/openapi/v3/{root}")
    except ApiError as error:
        raise CliError(
            f"couldn't find resource for {resource.api_version}: {error.message}"
        ) from error


def _schema_of(schemas: dict[str, Obj], resource: ApiResource) -> Obj:
    wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    for schema in schemas.values():
        if wanted in (schema.get("x-kubernetes-group-version-kind") or []):
            return schema
    raise CliError(f'Couldn\'t find resource for "{resource.api_version}, Kind={resource.kind}"')


def _resolve(schemas: dict[str, Obj], schema: Obj) -> Obj:
    """What a reference stands for, with the words of the place that refers."""
    inner: Obj = dict(schema)
    reference = schema.get("$ref") or next(
        (item.get("$ref") for item in schema.get("allOf") or [] if item.get("$ref")), None
    )
    if reference:
        target = schemas.get(reference.removeprefix(REF)) or {}
        inner = {
            **target,
            **{key: value for key, value in schema.items() if key not in ("$ref", "allOf")},
        }
        inner["_type"] = reference.rpartition(".")[2]
        inner["_own"] = target.get("description")
    return inner


def type_text(schemas: dict[str, Obj], schema: Obj) -> str:
    inner = _resolve(schemas, schema)
    if inner.get("_type") and (inner.get("properties") or inner.get("type") in (None, "object")):
        return str(inner["_type"])
    kind = inner.get("type")
    if kind == "array":
        return f"[]{type_text(schemas, inner.get('items') or {})}"
    if kind == "object" and inner.get("additionalProperties"):
        extra = inner["additionalProperties"]
        return f"map[string]{type_text(schemas, extra if isinstance(extra, dict) else {})}"
    if inner.get("_type") in ("Quantity", "IntOrString", "Time", "MicroTime"):
        return str(inner["_type"])
    return str(kind or "Object")


def _element(schemas: dict[str, Obj], schema: Obj) -> Obj:
    """The fields behind lists and maps."""
    inner = _resolve(schemas, schema)
    if inner.get("type") == "array":
        return _element(schemas, inner.get("items") or {})
    extra = inner.get("additionalProperties")
    if isinstance(extra, dict):
        return _element(schemas, extra)
    return inner


def _text(
    resource: ApiResource, schemas: dict[str, Obj], schema: Obj, fields: list[str], recursive: bool
) -> str:
    lines = []
    if resource.group:
        lines.append(f"GROUP:      {resource.group}")
    lines += [f"KIND:       {resource.kind}", f"VERSION:    {resource.version}", ""]
    described = schema
    current = _element(schemas, schema)
    for index, field in enumerate(fields):
        properties = current.get("properties") or {}
        if field not in properties:
            raise CliError(f'field "{field}" does not exist')
        described = properties[field]
        current = _element(schemas, described)
        if index == len(fields) - 1:
            lines += [
                f"FIELD: {field} <{type_text(schemas, described)}>",
                *_enum(schemas, described, ""),
                "",
            ]
    lines.append("DESCRIPTION:")
    lines += _describe(schemas, described, current)
    if current.get("properties"):
        lines += ["FIELDS:", *_fields(schemas, current, 1, recursive)]
    return "\n".join(lines) + "\n\n"


def _describe(schemas: dict[str, Obj], described: Obj, current: Obj) -> list[str]:
    own = _resolve(schemas, described).get("description") or "<empty>"
    lines = _wrap(str(own), "    ")
    inner = current.get("_own")
    if inner and inner != own:
        lines += _wrap(str(inner), "    ")
    return [*lines, "    "]


def _enum(schemas: dict[str, Obj], schema: Obj, indent: str) -> list[str]:
    values = _resolve(schemas, schema).get("enum")
    if not values:
        return []
    lines = [f"{indent}ENUM:"]
    return lines + [
        f"{indent}    {'' if value is None else value or chr(34) * 2}" for value in values
    ]


def _fields(schemas: dict[str, Obj], schema: Obj, level: int, recursive: bool) -> list[str]:
    indent = "  " * level
    required = set(schema.get("required") or [])
    lines: list[str] = []
    for name in sorted(schema["properties"]):
        field: Any = schema["properties"][name]
        mark = " -required-" if name in required else ""
        lines.append(f"{indent}{name}\t<{type_text(schemas, field)}>{mark}")
        if recursive:
            lines += [f"{indent}{line}" for line in _enum(schemas, field, "")]
            inner = _element(schemas, field)
            if inner.get("properties") and level < 12:
                lines += _fields(schemas, inner, level + 1, recursive)
        else:
            lines += [f"{indent}{line}" for line in _enum(schemas, field, "")]
            text = str(_resolve(schemas, field).get("description") or "<no description>")
            lines += [*_wrap(text, indent + "  "), ""]
    return lines


def _wrap(text: str, indent: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines += textwrap.wrap(
            paragraph, WIDTH + len(indent), initial_indent=indent, subsequent_indent=indent,
            break_long_words=False, break_on_hyphens=False,
        ) or [indent]  # fmt: skip
    return lines


EXPLAIN = Command(
    "explain", "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [-o|--output=plaintext|plaintext-openapiv2] [options]",
    "Describe fields and structure of various resources.", run,
    (Flag("api-version", usage="Use the given api-version (group/version) of the resource."),
     Flag("output", short="o", default="plaintext", usage="Format in which to render the schema."),
     switch("recursive", "Print the names of all fields at once.")),
)  # fmt: skip
