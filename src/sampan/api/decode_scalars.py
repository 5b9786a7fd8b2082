"""Scalars as Go's decoder reads them: numbers, texts, quantities, times, bytes; and what it says.

Job: one checker for each format, with upstream's words for what does not fit; where in an object
    that was. Pure.
Invariant: a quantity, a time and bytes come out in their one spelling.
"""

import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sampan.api import go_base64, quantity
from sampan.api.objects import copy_of
from sampan.core.bounded import FlushedMemo
from sampan.core.patterns import lazy_pattern

# Where in the object we are: (), or (path of the holder, key or index). Linked, so that a step down
# costs one tuple; it becomes text only when something is wrong.
Path = tuple[Any, ...]


Checker = Callable[[Any, Path, list[Path]], Any]


_INTEGER_LIMITS = {"int32": 2**31, "int64": 2**63, "": 2**63}


_SECONDS = lazy_pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_MICROSECONDS = lazy_pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?:Z|[+-]\d\d:\d\d)", re.ASCII)
# The parts of a time, what the layout has in their place, and how a part looks.
_PARTS = (
    ("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"),
    ("15", r"\d\d?"), (":", ":"), ("04", r"\d\d"), (":", ":"), ("05", r"\d\d"),
    (".000000", r"\.\d{6}(?!\d)"), ("Z07:00", r"Z|[+-]\d\d:\d\d"),
)  # fmt: skip

_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)
_LAYOUTS = {
    "date-time": "2006-01-02T15:04:05Z07:00",
    "micro-time": "2006-01-02T15:04:05.000000Z07:00",
}


class Mismatch(Exception):
    """A value of the wrong type: `json: cannot unmarshal … into Go struct field …`."""

    def __init__(self, value: str, path: Path, wanted: str) -> None:
        super().__init__(value, path, wanted)
        self.value, self.path, self.wanted = value, path, wanted


class SelfRead(Mismatch):
    """Of a type that reads itself: what is wrong with its value ends the reading."""


class Malformed(Exception):
    """A value that its own type refused, worded by that type alone."""


_MOST_TEXTS, _MOST_LETTERS = 1024, 40  # whose one spelling is remembered


def steps_of(path: Path) -> list[str | int]:
    steps: list[str | int] = []
    while path:
        path, step = path
        steps.append(step)
    return steps[::-1]


def path_text(path: Path) -> str:
    """`spec.containers[0].image`."""
    text = ""
    for step in steps_of(path):
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def json_word(value: Any) -> str:
    """What Go's decoder calls a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def check_string(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is not str:
        raise Mismatch(json_word(value), path, "string")
    return value


def check_omitted_string(value: Any, path: Path, unknown: list[Path]) -> Any:
    return check_string(value, path, unknown)


def check_bool(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is not bool:
        raise Mismatch(json_word(value), path, "bool")
    return value


def check_number(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is not int and type(value) is not float:
        raise Mismatch(json_word(value), path, "float64")
    return value


def check_any(value: Any, path: Path, unknown: list[Path]) -> Any:
    return copy_of(value)


def integer(form: str) -> Checker:
    limit, wanted = _INTEGER_LIMITS[form], form or "int64"

    def check_integer(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is int and -limit <= value < limit:
            return value
        word = json_word(value)
        raise Mismatch(f"number {value}" if word == "number" else word, path, wanted)

    return check_integer


def converted_integer(form: str) -> Checker:
    limit, wanted = _INTEGER_LIMITS[form], form or "int64"

    def check_integer(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is float and value == int(value):
            value = int(value)
        if type(value) is not int:
            raise Mismatch(json_word(value), path, wanted)
        return (value + limit) % (2 * limit) - limit

    return check_integer


def _converted_int_or_string(value: Any, path: Path, unknown: list[Path]) -> Any:
    whole = type(value) is float and value == int(value)
    return _check_int_or_string(int(value) if whole else value, path, unknown)


def _converted_bytes(value: Any, path: Path, unknown: list[Path]) -> Any:
    try:
        return _check_bytes(value, path, unknown)
    except Malformed as problem:
        raise Malformed(f"error decoding from json: {problem}") from problem


def unstructured_text(root: Any, problem: Mismatch, named: str = "") -> str:
    """What Go says of a value that is no text, where an object is made of maps. `root`: the value
    that was checked; `named`: its Go type, where that has a name of its own."""
    if isinstance(problem, SelfRead):
        return f"json: cannot unmarshal {problem.value} into Go value of type {problem.wanted}"
    value = root
    for step in steps_of(problem.path):
        value = value[step]
    kinds = {bool: "bool", int: "int64", float: "float64", str: "string", list: "slice"}
    kind, wanted = kinds.get(type(value), "map"), problem.wanted
    if wanted.startswith("map["):
        return f"cannot restore map from {kind}"
    if wanted.startswith("[]"):
        return f"cannot restore slice from {kind}"
    if "." in wanted:
        return f"cannot restore struct from: {kind}"
    is_number = wanted.startswith(("int", "float"))
    if (kind == "int64" and wanted == "string") or (kind == "float64" and is_number):
        return f"cannot convert {kind} to {named or wanted}"
    return f"unrecognized type: {wanted}"


def _check_int_or_string(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is str or (type(value) is int and -(2**31) <= value < 2**31):
        return value
    word = json_word(value)
    raise SelfRead(f"number {value}" if word == "number" else word, path, "int32")


def _quantity() -> Checker:
    memo: FlushedMemo[str, str] = FlushedMemo(_MOST_TEXTS)
    known = memo.known

    def check_quantity(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is not str and type(value) is not int and type(value) is not float:
            raise Malformed(quantity.WRONG_FORM)
        try:
            return known[value]  # type: ignore[index]  # a number is in no table of texts
        except KeyError:
            pass
        try:
            found = quantity.canonical(value)
        except quantity.QuantityError as error:
            raise Malformed(str(error)) from error
        if type(value) is str and len(value) <= _MOST_LETTERS:
            memo.keep(value, found)  # the spelling that others are going to have too
        return found

    return check_quantity


def _check_bytes(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is list:
        return _listed_bytes(value, path)
    if type(value) is not str:
        raise Mismatch(json_word(value), path, "[]uint8")
    try:
        go_base64.decoded(value)
    except ValueError as error:
        raise Malformed(str(error)) from error
    return value.replace("\n", "").replace("\r", "")


def _why_no_time(value: str, form: str) -> str:
    """The first part that is not as the layout has it."""
    rest, told = value, f'parsing time "{value}" as "{_LAYOUTS[form]}": cannot parse'
    for name, pattern in _PARTS:
        if name[0] == "." and form != "micro-time":
            found = re.match(r"[.,]\d+", rest)
            rest = rest[found.end() :] if found else rest
            continue
        found = re.match(pattern, rest, re.ASCII)
        if found is None:
            return f'{told} "{rest}" as "{name}"'
        rest = rest[found.end() :]
    return (
        f'parsing time "{value}": extra text: "{rest}"' if rest else f'{told} "{value}" as "2006"'
    )


def _listed_bytes(value: list[Any], path: Path) -> str:
    """Bytes may also be told one by one."""
    for index, item in enumerate(value):
        if item is not None and (type(item) is not int or not 0 <= item < 256):
            word = f"number {item}" if type(item) in (int, float) else json_word(item)
            raise Mismatch(word, (path, index), "uint8")
    data = bytes(item or 0 for item in value)
    return binascii.b2a_base64(data, newline=False).decode()


def _in_utc(value: str, moment: datetime, pattern: str) -> str:
    try:
        return moment.astimezone(UTC).strftime(pattern)
    except OverflowError:
        return value  # before the first year, or after the last


def _time(form: str) -> Checker:
    pattern = "%Y-%m-%dT%H:%M:%S.%fZ" if form == "micro-time" else "%Y-%m-%dT%H:%M:%SZ"
    is_whole = _MICROSECONDS.fullmatch if form == "micro-time" else _SECONDS.fullmatch
    length = 27 if form == "micro-time" else 20  # of the canonical text
    # Moments of this second come again and again.
    memo: FlushedMemo[str, str | None] = FlushedMemo(_MOST_TEXTS)
    known = memo.known

    def check_time(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is not str:
            raise SelfRead(json_word(value), path, "string")
        try:
            return known[value]
        except KeyError:
            pass
        try:
            moment = datetime.fromisoformat(value) if is_whole(value) else None
        except ValueError:
            moment = None
        if moment is None:
            raise Malformed(_why_no_time(value, form))
        found: str | None = value
        if moment == _ZERO_TIME:
            found = None  # Go writes no moment that way
        elif len(value) != length or value[-1] != "Z":
            found = _in_utc(value, moment, pattern)
        if len(value) <= _MOST_LETTERS:
            memo.keep(value, found)
        return found

    return check_time


SCALARS: dict[Checker, type] = {
    check_string: str,
    check_omitted_string: str,
    check_bool: bool,
}


STRINGS: dict[str, Checker] = {
    "": check_string,
    "byte": _check_bytes,
    "date-time": _time("date-time"),
    "micro-time": _time("micro-time"),
    "int-or-string": _check_int_or_string,
    "quantity": _quantity(),
}


CONVERTED = {**STRINGS, "byte": _converted_bytes, "int-or-string": _converted_int_or_string}
