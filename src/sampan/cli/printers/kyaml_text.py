"""KYAML: YAML in flow style with quoted strings and trailing commas, one document per `---`.

Job: JSON data to KYAML; keys in the given order or the alphabet's.
"""

from typing import Any

from sampan.cli.printers import yaml_text
from sampan.core.patterns import lazy_pattern

_FOLD = "\\\n"
_WORDS = {
    "", "~", "null", "true", "false", "y", "yes", "on", "n", "no", "off", "t", "f",
    ".inf", "-.inf", "+.inf", ".nan", "inf", "-inf", "+inf", "nan", "infinity", "-infinity",
    "+infinity",
}  # fmt: skip
_SIXTY = lazy_pattern(r"[+-]?[1-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_NUMBER = lazy_pattern(
    r"[+-]?(0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|[0-9]+"
    r"|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)"
)
_TIME = lazy_pattern(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"([Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
    r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?)?"
)
_ESCAPES = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\r": "\\r", "\v": "\\v", "\0": "\\0", "\x1b": "\\e",
    "\x85": "\\N", "\xa0": "\\_", "\u2028": "\\L", "\u2029": "\\P", '"': '\\"', "\\": "\\\\",
}  # fmt: skip


def to_kyaml(value: Any, *, ordered: bool = False) -> str:
    return "---\n" + _value(value, 0, ordered) + "\n"


def _value(value: Any, depth: int, ordered: bool) -> str:
    if isinstance(value, dict):
        return _mapping(value, depth, ordered)
    if isinstance(value, list):
        return _sequence(value, depth, ordered)
    if isinstance(value, str):
        return _text(value, depth + 1)
    return yaml_text._scalar(value)


def _mapping(value: dict[str, Any], depth: int, ordered: bool) -> str:
    if not value:
        return "{}"
    keys = list(value) if ordered else sorted(value)
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
    """Quoted where it could be taken for something else, or has more than letters and digits."""
    if not _needs_quotes(key):
        return key
    letters = ("\\n" if letter == "\n" else _escaped(letter, "\\t") for letter in key)
    return '"' + "".join(letters) + '"'


def _needs_quotes(key: str) -> bool:
    if _is_ambiguous(key) or "\n" in key:
        return True
    return any(
        not (letter.isalnum() or letter == "_" or (letter in "-./" and 0 < at < len(key) - 1))
        for at, letter in enumerate(key)
    )


def _is_ambiguous(key: str) -> bool:
    if key.lower() in _WORDS or _SIXTY.fullmatch(key) or _TIME.fullmatch(key):
        return True
    return _NUMBER.fullmatch(key.replace("_", "")) is not None


def _text(text: str, depth: int) -> str:
    """Of several lines: each on one, by YAML's folding."""
    if "\n" not in text:
        return '"' + "".join(_escaped(letter, "\t") for letter in text) + '"'
    lead, out = "  " * depth, ['"', _FOLD]
    for letter in text:
        if out[-1].endswith("\n"):
            # A space that begins a line would be folded away.
            out.append(lead + ("\\" if letter.isspace() and letter != "\n" else " "))
        out.append("\\n" + _FOLD if letter == "\n" else _escaped(letter, "\t"))
    if not out[-1].endswith("\n"):
        out.append(_FOLD)
    return "".join([*out, lead, '"'])


def _escaped(letter: str, tab: str) -> str:
    if letter == "\t":
        return tab
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
