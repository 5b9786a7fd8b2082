"""YAML as the Go libraries of kubectl write it.

Job: JSON data to block-style YAML: sorted keys, lists not indented, long plain text folded.
Invariant: what a YAML 1.1 reader would take for another type is quoted.
"""

import re
from typing import Any

from sampan.core.digits import all_digits, is_digits, whole_number
from sampan.core.patterns import lazy_pattern

WIDTH = 80
_NOT_STRINGS = {
    "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE",
    "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off",
    "OFF", ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
    "-.Inf", "-.INF", "<<",
}  # fmt: skip
_INTEGER = lazy_pattern(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|[0-9][0-9_]*)$")
_FLOAT = lazy_pattern(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_SIXTY = lazy_pattern(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$")
_TIME = lazy_pattern(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"([Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]*)?(Z|[+-][0-9:]+)?)?$"
)
_ESCAPES = {
    "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f",
    "\r": "\\r", "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "\x85": "\\N", "\xa0": "\\_",
    "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip


def to_yaml(value: Any) -> str:
    lines: list[str] = []
    _block(lines, value, 0, "")
    return "\n".join(lines) + "\n"


def natural_key(text: str) -> list[tuple[int, Any]]:
    """go-yaml's order of keys: runs of digits compare as numbers, letters come after the rest."""
    key: list[tuple[int, Any]] = []
    for part in re.findall(r"[0-9]+|.", text, re.S):
        if all_digits(part):
            key.append((1, (whole_number(part), len(part))))
        elif part.isalpha():
            key.append((2, part))
        else:
            key.append((0, part))
    return key


def _block(lines: list[str], value: Any, indent: int, lead: str) -> None:
    """`lead` stands before the first line (`- ` of a list, `key:`), and is already indented."""
    if isinstance(value, dict) and value:
        for key in sorted(value, key=natural_key):
            _entry(lines, value[key], indent, (lead or " " * indent) + _scalar(key))
            lead = ""
    elif isinstance(value, list) and value:
        for item in value:
            _block(lines, item, indent + 2, (lead or " " * indent) + "- ")
            lead = ""
    elif isinstance(value, str):
        # Without anything around it the block indicators count from the line's start.
        depth = indent if lead else 2
        _append_text(lines, lead, value, depth, len(lead))
    else:
        lines.append(lead + _scalar(value))


def _entry(lines: list[str], value: Any, indent: int, lead: str) -> None:
    if isinstance(value, dict) and value:
        lines.append(lead + ":")
        _block(lines, value, indent + 2, "")
    elif isinstance(value, list) and value:
        lines.append(lead + ":")
        _block(lines, value, indent, "")
    elif isinstance(value, str):
        _append_text(lines, lead + ": ", value, indent + 2, len(lead) + 2)
    else:
        lines.append(f"{lead}: {_scalar(value)}")


def _append_text(lines: list[str], lead: str, text: str, indent: int, column: int) -> None:
    if "\n" in text and _literal_fits(text):
        chomp = "" if text.endswith("\n") else "-"
        body = text.removesuffix("\n") if chomp == "" else text
        if body.endswith("\n") or text == "\n":
            chomp = "+"
            body = text.removesuffix("\n")
        hint = "2" if body[:1] in (" ", "\n") else ""
        lines.append(f"{lead}|{hint}{chomp}")
        lines += [(" " * indent + line) if line else "" for line in body.split("\n")]
        return
    lines += _fold(lead, _quote(text), indent, column)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _quote(value)
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    if isinstance(value, float):
        return _float(value)
    return str(value)


def _float(value: float) -> str:
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return repr(value).replace("e-0", "e-0").replace("e+", "e+")


def _literal_fits(text: str) -> bool:
    """libyaml's rule: no trailing space on a line, and nothing that needs escapes."""
    if any(line.endswith(" ") for line in text.split("\n")):
        return False
    return all(_is_printable(letter) or letter == "\n" for letter in text)


def _is_printable(letter: str) -> bool:
    code = ord(letter)
    if letter == "\ufeff":
        return False
    return (
        0x20 <= code <= 0x7E
        or letter == "\t"
        or 0xA0 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


def _quote(text: str) -> str:
    if _must_be_told_a_string(text) or "\n" in text:
        return _double(text)
    if _is_plain(text):
        return text
    if all(_is_printable(letter) and letter != "\t" for letter in text):
        return "'" + text.replace("'", "''") + "'"
    return _double(text)


def _must_be_told_a_string(text: str) -> bool:
    if text in _NOT_STRINGS:
        return True
    first = text[0]
    if is_digits(first) or first in "+-.":
        bare = text.replace("_", "")
        if _SIXTY.match(text) or _TIME.match(text):
            return True
        if _INTEGER.match(text):
            return True
        return bool(_FLOAT.match(bare)) and not text.startswith("_")
    return False


def _is_plain(text: str) -> bool:
    if text[0] in "#,[]{}&*!|>'\"%@`" or text[0] == " " or text[-1] == " ":
        return False
    if text[0] in "-?:" and (len(text) == 1 or text[1] in " \t"):
        return False
    if text.startswith(("---", "...")):
        return False
    if ": " in text or " #" in text or text.endswith(":"):
        return False
    return all(_is_printable(letter) and letter != "\t" for letter in text)


def _double(text: str) -> str:
    out = []
    for letter in text:
        if letter in _ESCAPES:
            out.append(_ESCAPES[letter])
        elif _is_printable(letter):
            out.append(letter)
        elif ord(letter) <= 0xFF:
            out.append(f"\\x{ord(letter):02X}")
        elif ord(letter) <= 0xFFFF:
            out.append(f"\\u{ord(letter):04X}")
        else:
            out.append(f"\\U{ord(letter):08X}")
    return '"' + "".join(out) + '"'


def _fold(lead: str, written: str, indent: int, column: int) -> list[str]:
    """Broken at a space after WIDTH columns, as libyaml's writer does."""
    if column + len(written) <= WIDTH or " " not in written:
        return [lead + written]
    lines, line, at = [], lead, 0
    width = column
    is_double = written.startswith('"')
    while at < len(written):
        letter = written[at]
        alone = (
            letter == " "
            and 0 < at < len(written) - 1
            and written[at + 1] != " "
            and written[at - 1] != " "
        )
        if is_double:
            alone = letter == " " and 1 < at < len(written) - 2
        if alone and width > WIDTH:
            lines.append(line)
            line, width = " " * indent, indent
            if is_double and written[at + 1] == " ":
                line += "\\"
                width += 1
                line += letter
                width += 1
        else:
            line += letter
            width += 1
        at += 1
    return [*lines, line]
