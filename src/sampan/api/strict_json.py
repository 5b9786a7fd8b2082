"""Duplicate fields of a JSON body.

Job: bytes → (data, duplicate fields), for fieldValidation=Warn and Strict.
Invariant: of a field that is there twice the last one counts, as in lenient reading.
"""

import json
from collections.abc import Iterator
from typing import Any

from sampan.api.decode_scalars import Path, path_text
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Parsed:
    value: Any
    duplicates: list[str]  # 'duplicate field "metadata.name"', or YAML's own sentence


class _Repeated(dict[str, Any]):
    """An object some of whose keys came twice."""

    __slots__ = ("repeated",)
    repeated: list[str]


_PLACES = {
    "Expecting property name": "looking for beginning of object key string",
    "Expecting ':'": "after object key",
    "Expecting ','": "after object key:value pair",
    "Extra data": "after top-level value",
}


def parse(body: bytes) -> Parsed:
    """JSON; ValueError where it is none."""
    met: list[_Repeated] = []

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        plain = dict(pairs)
        if len(plain) == len(pairs):
            return plain
        marked = _Repeated(plain)
        marked.repeated = _repeats([key for key, _ in pairs])
        met.append(marked)
        return marked

    value = json.loads(body, object_pairs_hook=noted, parse_constant=_no_constant)
    if not met:
        return Parsed(value, [])
    duplicates = [f'duplicate field "{path_text(path)}"' for path in _mark(value, ())]
    return Parsed(_plain(value), duplicates)


def syntax_complaint(text: str) -> str:
    """What Go's decoder says of a text that is no JSON; empty where it is."""
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        rest = text[error.pos :]
        return _complaint(rest, error.msg) if rest else "unexpected end of JSON input"
    except ValueError as error:
        return str(error)
    return ""


def _complaint(rest: str, problem: str) -> str:
    for word in ("true", "false", "null"):
        if rest[0] == word[0]:
            good = next((at for at, item in enumerate(word) if rest[at : at + 1] != item), 0)
            if good >= len(rest):
                return "unexpected end of JSON input"
            return f"invalid character '{rest[good]}' in literal {word} (expecting '{word[good]}')"
    place = "looking for beginning of value"
    for start, said in _PLACES.items():
        if problem.startswith(start):
            place = said
    return f"invalid character '{rest[0]}' {place}"


def _no_constant(word: str) -> Any:
    raise ValueError(f"invalid character '{word[0]}' looking for beginning of value")


def _repeats(keys: list[str]) -> list[str]:
    """The keys that come more than once, each one once."""
    seen: set[str] = set()
    again: dict[str, None] = {}
    for key in keys:
        if key in seen:
            again[key] = None
        seen.add(key)
    return list(again)


def _mark(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        if isinstance(value, _Repeated):
            yield from ((path, key) for key in value.repeated)
        for key, item in value.items():
            yield from _mark(item, (path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _mark(item, (path, index))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
