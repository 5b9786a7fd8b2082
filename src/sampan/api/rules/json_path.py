"""JSONPath as printer columns and selectors of fields use it.

Job: parse a path once, find the values that it leads to. Pure.
Supported: fields (`.a`, `['a-b']`), indices and slices of one (`[0]`, `[-1]`), wildcards (`[*]`,
`.*`), recursive descent (`..a`), filters (`[?(@.type=="Ready")]`) and unions of names.
Invariant: what is not there is not found; nothing raises once a path is parsed.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

Step = Callable[[Any], Iterable[Any]]
_FIELD = re.compile(r"\.((?:[^.\[\]\\]|\\.)+)")
_DEEP = re.compile(r"\.\.((?:[^.\[\]\\]|\\.)*)")
_INDEX = re.compile(r"\[(-?\d+)\]")
_SLICE = re.compile(r"\[(-?\d*):(-?\d*)(?::(\d+))?\]")
_QUOTED = re.compile(r"""\[\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*\]""")
_FILTER = re.compile(
    r"""\[\?\(\s*@\.([^=!<>\s)]+)\s*(?:(==|!=|<=|>=|<|>)\s*('[^']*'|"[^"]*"|[^)\s]+)\s*)?\)\]"""
)


class NotJsonPath(ValueError):
    """The text is no path that we know."""


class JsonPath:
    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._steps = steps

    def find(self, obj: Any) -> list[Any]:
        found = [obj]
        for step in self._steps:
            found = [inner for match_ in found for inner in step(match_)]
        return found


def parse_json_path(text: str) -> JsonPath:
    """Raises NotJsonPath."""
    rest = text.strip()
    if rest.startswith("{") and rest.endswith("}"):
        rest = rest[1:-1]
    rest = rest.removeprefix("$")
    steps: list[Step] = []
    while rest:
        step, length = _step(rest, text)
        steps.append(step)
        rest = rest[length:]
    return JsonPath(tuple(steps))


def _step(rest: str, whole: str) -> tuple[Step, int]:
    for pattern, make in _STEPS:
        found = pattern.match(rest)
        if found is not None:
            return make(found), found.end()
    if rest.startswith("[*]"):
        return _every, 3
    raise NotJsonPath(f"unrecognized JSONPath: {whole}")


def _every(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _field(found: "re.Match[str]") -> Step:
    name = re.sub(r"\\(.)", r"\1", found[1])
    if name == "*":
        return _every
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _quote(found: "re.Match[str]") -> Step:
    name = re.sub(r"\\(.)", r"\1", found[1][1:-1])
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _index(found: "re.Match[str]") -> Step:
    at = int(found[1])

    def step(value: Any) -> Iterable[Any]:
        if isinstance(value, list) and -len(value) <= at < len(value):
            return (value[at],)
        return ()

    return step


def _slice(found: "re.Match[str]") -> Step:
    start, end = (int(item) if item else None for item in (found[1], found[2]))
    width = int(found[3]) if found[3] else 1
    return lambda value: value[start : end : max(width, 1)] if isinstance(value, list) else ()


def _deep(found: "re.Match[str]") -> Step:
    name = found[1]

    def step(value: Any) -> Iterable[Any]:
        below = _every(value)
        if name and isinstance(value, dict) and name in value:
            yield value[name]
        elif not name:
            yield value
        for item in below:
            yield from step(item)

    return step


def _filter(found: "re.Match[str]") -> Step:
    path = parse_json_path(f".{found[1]}")
    operator, wanted = found[2], None if found[3] is None else _literal(found[3])

    def step(value: Any) -> Iterable[Any]:
        if not isinstance(value, list):
            return ()
        return [item for item in value if _holds(path.find(item), operator, wanted)]

    return step


def _literal(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def _holds(found: list[Any], operator: str | None, wanted: Any) -> bool:
    if operator is None:
        return bool(found)
    if not found:
        return False
    value = found[0]
    if operator == "==":
        return bool(value == wanted)
    if operator == "!=":
        return bool(value != wanted)
    try:
        return bool(_ORDERED[operator](value, wanted))
    except TypeError:
        return False


_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_STEPS: tuple[tuple["re.Pattern[str]", Callable[["re.Match[str]"], Step]], ...] = (
    (_DEEP, _deep),
    (_FIELD, _field),
    (_INDEX, _index),
    (_SLICE, _slice),
    (_QUOTED, _quote),
    (_FILTER, _filter),
)
