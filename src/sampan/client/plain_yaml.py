"""YAML as programs write kubeconfigs: maps and lists by indentation, values on one line.

Job: read and write that much without the library, whose import takes longer than a whole request.
    Pure.
Invariant: what it reads, the library reads the same; whatever it is not sure of, it does not read.
Invariant: what it writes, both read as it was; what they might not, it does not write.
"""

import re
from typing import Any

from sampan.core.patterns import lazy_pattern

_KEY = r"[A-Za-z][A-Za-z0-9_./@-]*"
_ENTRY = lazy_pattern(rf"({_KEY}):(?: +(.+))?")
_ITEM = lazy_pattern(r"-( +)(.+)")
# Text that cannot be a number, a date or a reference: no spaces, and a colon only inside.
_TEXT = lazy_pattern(r"[A-Za-z/][A-Za-z0-9/_.@+=,%~-]*(?::[A-Za-z0-9/_.@+=,%~-]+)*")
_QUOTED = lazy_pattern(r"\"([ -!#-\[\]-~]*)\"|'([ -&(-~]*)'")
_WORDS = {"true": True, "false": False, "null": None}
_SIMPLE: dict[str, Any] = {"{}": dict, "[]": list}
_OTHERS = frozenset({"y", "n", "yes", "no", "on", "off"})  # other ways to say true and false

Line = tuple[int, str]  # how far it is indented, and what it says


class Unusual(Exception):
    """Not what programs write: the library's to read."""


def read(text: str) -> Any:
    """Raises Unusual."""
    lines: list[Line] = []
    for line in text.split("\n"):
        text = line.lstrip(" ")
        if text and not text.startswith("#"):
            lines.append((len(line) - len(text), text.rstrip(" ")))
    if not lines:
        raise Unusual
    value, at = _block(lines, 0, lines[0][0])
    if at != len(lines):
        raise Unusual
    return value


def write(document: dict[str, Any]) -> str:
    """In its own order. Raises Unusual."""
    return "\n".join(_lines(document, "")) + "\n"


def _lines(value: Any, indent: str) -> list[str]:
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in _entry_lines(key, item, indent)]
    lines = []
    for item in value:
        if isinstance(item, dict | list) and item:
            inside = _lines(item, indent + "  ")
            lines += [f"{indent}- {inside[0].lstrip(' ')}", *inside[1:]]
        else:
            lines.append(f"{indent}- {_said(item)}")
    return lines


def _entry_lines(key: Any, item: Any, indent: str) -> list[str]:
    if not isinstance(key, str) or not re.fullmatch(_KEY, key):
        raise Unusual
    if key.lower() in _WORDS or key.lower() in _OTHERS:
        raise Unusual
    if isinstance(item, dict | list) and item:
        below = indent if isinstance(item, list) else indent + "  "
        return [f"{indent}{key}:", *_lines(item, below)]
    return [f"{indent}{key}: {_said(item)}"]


def _said(value: Any) -> str:
    if value is True or value is False or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if value in ({}, []):
        return "{}" if value == {} else "[]"
    if not isinstance(value, str):
        raise Unusual
    is_plain = (
        _TEXT.fullmatch(value) and value.lower() not in _WORDS and value.lower() not in _OTHERS
    )
    text = value if is_plain else f"'{value}'"
    if not is_plain and not _QUOTED.fullmatch(text):
        raise Unusual
    return text


def _block(lines: list[Line], at: int, indent: int) -> tuple[Any, int]:
    return (_list if lines[at][1].startswith("- ") else _map)(lines, at, indent)


def _map(lines: list[Line], at: int, indent: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent:
        match = _ENTRY.fullmatch(lines[at][1])
        if match is None:
            break
        key, value = match.groups()
        if key.lower() in _WORDS or key.lower() in _OTHERS or key in found:
            raise Unusual
        at += 1
        if value is not None:
            found[key] = _scalar(value)
        else:
            found[key], at = _below(lines, at, indent)
    if not found or (at < len(lines) and lines[at][0] > indent):
        raise Unusual
    return found, at


def _below(lines: list[Line], at: int, indent: int) -> tuple[Any, int]:
    """What a key without a value has: deeper lines, a list at its own depth, or nothing."""
    if at < len(lines):
        depth, text = lines[at]
        if depth > indent or (depth == indent and text.startswith("- ")):
            return _block(lines, at, depth)
    return None, at


def _list(lines: list[Line], at: int, indent: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while at < len(lines) and lines[at][0] == indent:
        match = _ITEM.fullmatch(lines[at][1])
        if match is None:
            break
        spaces, text = match.groups()
        if _ENTRY.fullmatch(text) or text.startswith("- "):
            depth = indent + 1 + len(spaces)
            lines[at] = (depth, text)  # the rest of the line is the first of what is inside
            value, at = _block(lines, at, depth)
            found.append(value)
        else:
            found.append(_scalar(text))
            at += 1
    if at < len(lines) and lines[at][0] > indent:
        raise Unusual
    return found, at


def _scalar(text: str) -> Any:
    if text in _SIMPLE:
        return _SIMPLE[text]()
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        return quoted[1] if quoted[1] is not None else quoted[2]
    if not _TEXT.fullmatch(text):
        raise Unusual
    word = text.lower()
    if word in _OTHERS:
        raise Unusual
    if word in _WORDS:
        if text not in (word, word.capitalize(), word.upper()):
            raise Unusual
        return _WORDS[word]
    return text
