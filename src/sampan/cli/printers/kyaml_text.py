"""KYAML: YAML in flow style with quoted strings and trailing commas, one document per `---`.

Job: JSON data to KYAML; keys in the given order or the alphabet's.
"""

import re
from typing import Any

from sampan.cli.printers import yaml_text

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*$")


def to_kyaml(value: Any, *, ordered: bool = False) -> str:
    return "---\n" + _value(value, 0, ordered) + "\n"


def _value(value: Any, depth: int, ordered: bool) -> str:
    if isinstance(value, dict):
        return _mapping(value, depth, ordered)
    if isinstance(value, list):
        return _sequence(value, depth, ordered)
    if isinstance(value, str):
        return _text(value, depth)
    return yaml_text._scalar(value)


def _mapping(value: dict[str, Any], depth: int, ordered: bool) -> str:
    if not value:
        return "{}"
    keys = list(value) if ordered else sorted(value, key=yaml_text.natural_key)
    inner = "  " * (depth + 1)
    lines = [f"{inner}{_key(key)}: {_value(value[key], depth + 1, ordered)}," for key in keys]
    return "{\n" + "\n".join(lines) + "\n" + "  " * depth + "}"


def _sequence(value: list[Any], depth: int, ordered: bool) -> str:
    if not value:
        return "[]"
    if all(isinstance(item, (dict, list)) for item in value):
        return "[" + ", ".join(_value(item, depth, ordered) for item in value) + "]"
    inner = "  " * (depth + 1)
    lines = [f"{inner}{_value(item, depth + 1, ordered)}," for item in value]
    return "[\n" + "\n".join(lines) + "\n" + "  " * depth + "]"


def _key(key: str) -> str:
    is_plain = _PLAIN_KEY.match(key) and not yaml_text._must_be_told_a_string(key)
    return key if is_plain else yaml_text._double(key)


def _text(text: str, depth: int) -> str:
    if "\n" not in text.rstrip("\n") or not text:
        return yaml_text._double(text)
    inner = "  " * (depth + 1)
    body = yaml_text._double(text)[1:-1]
    lines = body.replace("\\n", "\\n\\\n").split("\n")
    if lines[-1] == "":
        lines = lines[:-1]
    shown = [f"{inner} {line}" if line else line for line in lines]
    last = shown[-1] if shown[-1].endswith("\\") else shown[-1] + "\\"
    return '"\\\n' + "\n".join([*shown[:-1], last]) + f'\n{inner}"'
