"""A published schema as `explain` shows it. Pure.

Job: follow the path of fields from a kind's schema; describe what is there, and the fields below it.
Invariant: a schema that leads back to itself is shown once on each way.
"""

from typing import Any

from sampan.api.objects import Obj

Schemas = dict[str, Obj]
REF = "#/components/schemas/"
WIDTH = 80
MOST_CHOICES = 4  # of an enum, beside a field among others


def field_text(schemas: Schemas, schema: Obj, path: list[str], *, recursive: bool) -> str:
    """What is said of the field that the path leads to; nothing if there is none."""
    return "".join(_walk(schemas, schema, path, recursive, frozenset()))


def _walk(
    schemas: Schemas, schema: Obj, path: list[str], recursive: bool, seen: frozenset[str]
) -> list[str]:
    reference = schema.get("$ref") or ""
    resolved = _resolve(schemas, schema)
    if not path:
        described = _descriptions(schemas, resolved) or "<empty>"
        listed = _fields(schemas, resolved, 1, recursive, frozenset())
        text = f"DESCRIPTION:\n{_indent(_wrap(described, WIDTH - 4), 4)}\n"
        return [text, *(["FIELDS:\n", *listed] if listed else [])]
    if reference and reference in seen:
        return []
    seen = seen | {reference}
    inner = (resolved.get("properties") or {}).get(path[0])
    if inner is not None:
        head = f"FIELD: {path[0]} <{type_text(schemas, inner)}>\n{_all_choices(inner)}\n\n"
        rest = _walk(schemas, inner, path[1:], recursive, frozenset())
        return [head, *rest] if len(path) == 1 else rest
    element = _element(resolved)
    if element is not None:
        return _walk(schemas, element, path, recursive, seen)
    for part in resolved.get("allOf") or []:
        found = _walk(schemas, part, path, recursive, seen)
        if found:
            return found
    return []


def _fields(
    schemas: Schemas, schema: Obj, level: int, recursive: bool, seen: frozenset[str]
) -> list[str]:
    reference = schema.get("$ref") or ""
    if reference and reference in seen:
        return []
    seen = seen | {reference}
    resolved = _resolve(schemas, schema)
    lines: list[str] = []
    properties = resolved.get("properties") or {}
    for name in sorted(properties):
        is_required = name in (resolved.get("required") or [])
        lines.append(_field(schemas, name, properties[name], level, is_required, recursive))
        if recursive:
            lines += _fields(schemas, properties[name], level + 1, recursive, seen)
    element = _element(resolved)
    for part in [*(resolved.get("allOf") or []), *([element] if element is not None else [])]:
        lines += _fields(schemas, part, level, recursive, seen)
    return lines


def _field(
    schemas: Schemas, name: str, schema: Obj, level: int, is_required: bool, is_short: bool
) -> str:
    space = 2 * level
    mark = " -required-" if is_required else ""
    text = f"{' ' * space}{name}\t<{type_text(schemas, schema)}>{mark}{_choices(schema, space)}\n"
    if is_short:
        return text
    described = _wrap(schema.get("description") or "<no description>", WIDTH - 2 - space)
    return f"{text}{_indent(described, space + 2)}\n\n"


def type_text(schemas: Schemas, schema: Obj) -> str:
    """`string`, `[]Container`, `map[string]Quantity`."""
    if schema.get("items"):
        return f"[]{type_text(schemas, schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        return f"map[string]{type_text(schemas, schema['additionalProperties'])}"
    parts = schema.get("allOf") or []
    if len(parts) == 1 and not schema.get("properties"):
        return type_text(schemas, parts[0])
    reference = schema.get("$ref")
    if reference:
        kind = (schemas.get(reference.removeprefix(REF)) or {}).get("type")
        is_name = kind in (None, "object")  # only an object is called by its name
        return reference.rpartition("/")[2].rpartition(".")[2] if is_name else str(kind)
    kind = schema.get("type")
    return "Object" if kind in (None, "object") else str(kind)


def _resolve(schemas: Schemas, schema: Obj) -> Obj:
    return schemas.get((schema.get("$ref") or "").removeprefix(REF)) or schema


def _element(schema: Obj) -> Obj | None:
    """What a list or a map holds."""
    if schema.get("items"):
        items: Obj = schema["items"]
        return items
    extra: Any = schema.get("additionalProperties")
    return extra if isinstance(extra, dict) and extra else None


def _descriptions(schemas: Schemas, schema: Obj) -> str:
    """Its own, and those of the types behind it, a line each."""
    resolved = _resolve(schemas, schema)
    text = f"{resolved['description']}\n" if resolved.get("description") else ""
    element = _element(resolved)
    for part in [*(resolved.get("allOf") or []), *([element] if element is not None else [])]:
        text += _descriptions(schemas, part)
    return text


def _choices(schema: Obj, space: int) -> str:
    values = schema.get("enum") or []
    if not values:
        return ""
    more = ", ...." if len(values) > MOST_CHOICES else ""
    return f"\n{' ' * space}enum: {', '.join(map(_choice, values[:MOST_CHOICES]))}{more}"


def _all_choices(schema: Obj) -> str:
    values = schema.get("enum") or []
    return "ENUM:" + "".join(f"\n    {_choice(value)}" for value in values) if values else ""


def _choice(value: Any) -> str:
    return '""' if value == "" else "<no value>" if value is None else str(value)


def _indent(text: str, space: int) -> str:
    return "\n".join(" " * space + line for line in text.split("\n"))


def _wrap(text: str, width: int) -> str:
    import textwrap

    return "\n".join(
        line
        for paragraph in text.split("\n")
        for line in textwrap.wrap(
            paragraph, width, break_long_words=False, break_on_hyphens=False, expand_tabs=False
        )
        or [""]
    )
