"""`'%s has %d'.format([…])`: values put into texts.

Job: the clauses %s %d %f %e %b %o %x %X and %%.
Invariant: a clause takes only values that it can show.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from sampan.api.cel.language.errors import CostExceeded, EvaluationError
from sampan.api.cel.language.types import Type
from sampan.api.cel.language.values import Duration, Timestamp, Uint, Value, shown_key, type_of
from sampan.api.cel.libraries.standard import double_text
from sampan.api.cel.libraries.times import text_of
from sampan.core.patterns import lazy_pattern

MOST_DIGITS = 1000
MOST_CHARACTERS = 10 * 1000 * 1000  # what could be read of it within the cost of an expression
_CLAUSE = lazy_pattern(r"%(?:%|(?:\.(\d+))?(.))", re.DOTALL)
_QUOTED = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(item, item) for item in text) + '"'


def format_text(template: str, values: list[Value]) -> str:
    given = iter(values)
    missing = object()
    used = size = 0

    def clause(match: re.Match[str]) -> str:
        nonlocal used, size
        if match.group() == "%%":
            return "%"
        value = next(given, missing)
        if value is missing:
            raise EvaluationError(f"index {used} out of range")
        used += 1
        shown = _argument_text(match[2], match[1], value)
        size += len(shown)
        if size > MOST_CHARACTERS:
            raise CostExceeded
        return shown

    made = _CLAUSE.sub(clause, template)
    if re.search(r"(?<!%)(?:%%)*%$", template):
        raise EvaluationError("unexpected end of string")
    return made


def _argument_text(verb: str, precision: str | None, value: Value) -> str:
    if verb == "s":
        return text_form(value)
    if verb == "d":
        return _decimal(value)
    if verb in "fe":
        return _real(verb, _digits(precision), value)
    if verb == "b":
        return _in_base("b", value, (int, Uint, bool))
    if verb == "o":
        return _in_base("o", value, (int, Uint))
    if verb in "xX":
        return _hexadecimal(verb, value)
    raise EvaluationError(
        f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
    )


def text_form(value: Value) -> str:
    plain = _PLAIN_FORMS.get(type(value))
    if plain is not None:
        return plain(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(text_form(item) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = sorted((text_form(shown_key(key)), text_form(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {pair}" for key, pair in pairs) + "}"
    raise _unsuitable("string clause can only be used on strings, bools, bytes, ints, doubles, "
                      "maps, lists, types, durations, and timestamps", value)  # fmt: skip


_PLAIN_FORMS: dict[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
    float: lambda value: _special(value) or double_text(value),
    int: str,
    Uint: lambda value: str(int(value)),
    bytes: lambda value: str(value.decode(errors="replace")),
    Timestamp: text_of,
    Duration: text_of,
    Type: lambda value: str(value.name),
}


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return ""


def _decimal(value: Value) -> str:
    if type(value) is int or type(value) is Uint:
        return str(int(value))
    if type(value) is float and _special(value):
        return _special(value)
    raise _unsuitable("decimal clause can only be used on integers", value)


def _digits(precision: str | None) -> int:
    """As cel-go: a precision is part of what an expression may ask for, and bounded."""
    if precision is None:
        return 6
    if len(precision.lstrip("0")) > 4 or int(precision) > MOST_DIGITS:
        raise EvaluationError(
            "could not parse formatting clause: error while parsing precision: precision too "
            f"large: maximum is {MOST_DIGITS}"
        )
    return int(precision)


def _real(verb: str, precision: int, value: Value) -> str:
    if type(value) is not float:
        name = "fixed-point" if verb == "f" else "scientific"
        raise _unsuitable(f"{name} clause can only be used on doubles", value)
    return _special(value) or f"{value:.{precision}{verb}}"


def _in_base(form: str, value: Value, kinds: tuple[type, ...]) -> str:
    if type(value) not in kinds:
        name = "only integers and bools can be formatted as binary"
        if form == "o":
            name = "octal clause can only be used on integers"
        raise _unsuitable(name, value)
    return format(int(value), form)


def _hexadecimal(verb: str, value: Value) -> str:
    if type(value) is int or type(value) is Uint:
        return format(int(value), verb)
    if type(value) is str or type(value) is bytes:
        made = (value.encode() if isinstance(value, str) else value).hex()
        return made.upper() if verb == "X" else made
    raise _unsuitable("only integers, byte buffers, and strings can be formatted as hex", value)


def _unsuitable(rule: str, value: Value) -> EvaluationError:
    return EvaluationError(f"error during formatting: {rule}, was given {type_of(value).name}")
