"""A definition of OpenAPI v2 as `explain --output=plaintext-openapiv2` shows it. Pure.

Job: follow the path of fields, then kind and version, what is said of it, and its fields.
Invariant: a definition that leads back to itself is shown once on each way.
"""

from collections.abc import Iterator

from sampan.api.objects import Obj
from sampan.core.patterns import lazy_pattern

WIDTH = 80
REF = "#/definitions/"
_BULLET = lazy_pattern(r"(\d+\.?|-|\*)\s")


class Missing(Exception):
    """No such field; its name."""


class Definitions:
    def __init__(self, definitions: dict[str, Obj]) -> None:
        self._all = definitions

    def of_kind(self, group: str, version: str, kind: str) -> Obj | None:
        wanted = {"group": group, "version": version, "kind": kind}
        for name, schema in self._all.items():
            if wanted in (schema.get("x-kubernetes-group-version-kind") or []):
                return {"$ref": REF + name}
        return None

    def text(self, schema: Obj, path: list[str], heading: str, *, recursive: bool) -> str:
        """`heading` is the kind and the version."""
        found = self._field(self._target(schema), path) if path else self._target(schema)
        name = path[-1] if path else ""
        return "".join(f"{line}\n" for line in self._model(found, name, heading, recursive))

    def _target(self, schema: Obj) -> Obj:
        reference = str(schema.get("$ref") or "")
        return self._all.get(reference.removeprefix(REF), {}) if reference else schema

    def _field(self, schema: Obj, path: list[str]) -> Obj:
        if not path:
            return schema
        if "$ref" in schema:
            return self._field(self._target(schema), path)
        inner = schema.get("items") or schema.get("additionalProperties")
        if isinstance(inner, dict) and "properties" not in schema:
            return self._field(inner, path)
        field = (schema.get("properties") or {}).get(path[0])
        if field is None:
            raise Missing(path[0])
        return self._field(field, path[1:])

    def type_name(self, schema: Obj) -> str:
        if "$ref" in schema:
            return self.type_name(self._target(schema))
        if schema.get("type") == "array":
            return f"[]{self.type_name(schema.get('items') or {})}"
        if isinstance(schema.get("additionalProperties"), dict):
            return f"map[string]{self.type_name(schema['additionalProperties'])}"
        if "properties" in schema:
            return "Object"
        kind = str(schema.get("type") or "")
        return "map[string]" if kind == "object" else kind

    def _model(self, schema: Obj, name: str, heading: str, recursive: bool) -> Iterator[str]:
        described, kind = [], ""
        while True:
            described.append(str(schema.get("description") or ""))
            if "$ref" in schema:
                schema = self._target(schema)
                continue
            kind = kind or self.type_name(schema)
            inner = schema.get("items") or schema.get("additionalProperties")
            if not isinstance(inner, dict) or "properties" in schema:
                break
            schema = inner
        yield from (heading, "")
        is_object = "properties" in schema
        if name and is_object:
            yield from (f"RESOURCE: {name} <{kind}>", "")
        elif not is_object and schema.get("type"):
            yield from (f"FIELD:    {name} <{kind}>", "")
        yield from _description(described)
        if is_object:
            yield from ("", "FIELDS:")
            yield from self._fields(schema, 3, recursive, frozenset())

    def _fields(
        self, schema: Obj, indent: int, recursive: bool, seen: frozenset[str]
    ) -> Iterator[str]:
        if "$ref" in schema:
            if schema["$ref"] not in seen:
                more = seen | {schema["$ref"]}
                yield from self._fields(self._target(schema), indent, recursive, more)
            return
        inner = schema.get("items") or schema.get("additionalProperties")
        if "properties" not in schema and isinstance(inner, dict):
            yield from self._fields(inner, indent, recursive, seen)
        space = " " * indent
        for key in sorted(schema.get("properties") or {}):
            field = schema["properties"][key]
            line = f"{space}{key}\t<{self.type_name(field)}>"
            if recursive:
                yield line
                yield from self._fields(field, indent + 3, recursive, seen)
                continue
            yield line + (" -required-" if key in (schema.get("required") or []) else "")
            yield from _wrapped(str(field.get("description") or ""), indent + 2)
            yield ""


def _description(texts: list[str]) -> Iterator[str]:
    yield "DESCRIPTION:"
    for index, text in enumerate(texts):
        if text and index:
            yield ""
        if text:
            yield from _wrapped(text, 5)
    if not any(texts):
        yield "     <empty>"


def _wrapped(text: str, indent: int) -> Iterator[str]:
    for line in wrap(text, WIDTH - indent):
        yield " " * indent + line if line else ""


def wrap(text: str, width: int) -> list[str]:
    """Words to lines; lists, indented lines and what follows a colon begin a new one."""
    out: list[str] = []
    words: list[str] = []
    last = ""

    def flush() -> None:
        nonlocal last
        if words:
            last = ""
            out.append(" ".join(words))
            words.clear()

    for line in text.split("\n"):
        if line.startswith("    "):
            flush()
            out.append(line)
            continue
        if out and not line.strip():
            flush()
            out.append("")
            continue
        if last.endswith(":") or not line.strip() or _BULLET.match(line.strip()):
            flush()
        for word in line.split():
            if words and len(" ".join([*words, word]).encode()) > width:
                flush()
            last = word
            words.append(word)
    flush()
    return out
