"""Any object, described by its fields.

Job: names as titles, nested values indented; what nobody described specially.
"""

import re
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.describe.writer import Writer

ACRONYMS = ("API", "URL", "UID", "OSB", "GUID")
_SKIPPED = {
    "metadata": ("managedFields", "name", "namespace", "labels", "annotations", "selfLink"),
}


def generic(writer: Writer, obj: Obj, namespaced: bool) -> None:
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"].get("namespace") or "")
    writer.labels("Labels:", obj["metadata"].get("labels"))
    writer.annotations(obj)
    _mapping(writer, obj, 0, ())


def title(name: str) -> str:
    """`apiVersion` → `API Version`; a name of more than letters and dashes stays as it is."""
    if not all(letter.isalpha() or letter == "-" for letter in name):
        return name
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|-+", name)
    return " ".join(
        word.upper() if word.upper() in ACRONYMS else word[:1].upper() + word[1:] for word in words
    )


def _mapping(writer: Writer, value: Obj, level: int, path: tuple[str, ...]) -> None:
    for key in sorted(value):
        if path == ("metadata",) and key in _SKIPPED["metadata"]:
            continue
        _entry(writer, key, value[key], level, path)


def _entry(writer: Writer, key: str, value: Any, level: int, path: tuple[str, ...]) -> None:
    name = f"{title(key)}:"
    if isinstance(value, dict):
        if key == "metadata" and not path:
            writer.line(level, name)
            _mapping(writer, value, level + 1, ("metadata",))
            return
        writer.line(level, name)
        _mapping(writer, value, level + 1, (*path, key))
    elif isinstance(value, list):
        if not value:
            writer.line(level, name)
            return
        writer.line(level, name)
        for item in value:
            if isinstance(item, dict):
                _mapping(writer, item, level + 1, (*path, key))
            else:
                writer.line(level + 1, _text(item))
    else:
        writer.line(level, name, _text(value))


def _text(value: Any) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
