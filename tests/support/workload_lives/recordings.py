"""Recorded lives, and where another run of them differs.

Job: read and write them; paths of differences; which of those the recorded cluster has with itself.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

COMPARED = ("answers", "final", "places")


@dataclass(frozen=True, slots=True)
class Difference:
    path: str
    recorded: Any
    seen: Any

    def __str__(self) -> str:
        return (
            f"{self.path}\n    recorded {_short(self.recorded)}\n    seen     {_short(self.seen)}"
        )


def read(file: Path) -> dict[str, Obj]:
    found: dict[str, Obj] = orjson.loads(gzip.decompress(file.read_bytes()))
    return found


def write(file: Path, lives: Mapping[str, Obj]) -> None:
    text = orjson.dumps(lives, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
    file.write_bytes(gzip.compress(text, 9, mtime=0))


def combined(recorded: Iterable[Obj]) -> Obj:
    """The first of several recordings of one life, with the paths in which they are not equal."""
    first, *others = recorded
    known = first.get("unstable") or ()
    unstable = sorted({*known, *(found.path for other in others for found in _all(first, other))})
    return {**first, "unstable": unstable} if unstable else first


def differences(recorded: Obj, seen: Obj) -> list[Difference]:
    """Where it matters, and was not unstable on record."""
    unstable = recorded.get("unstable") or ()
    return [
        found
        for found in _all(recorded, seen)
        if not any(found.path.startswith(path) for path in unstable)
    ]


def _all(one: Obj, other: Obj) -> Iterator[Difference]:
    for part in COMPARED:
        yield from _between(one.get(part), other.get(part), part)
    mine, yours = one["events"], other["events"]
    for text in sorted({*mine, *yours}):
        if _is_other_count(mine.get(text, 0), yours.get(text, 0)):
            yield Difference(f"events.{text}", mine.get(text), yours.get(text))


def _is_other_count(recorded: int, seen: int) -> bool:
    """How often something is tried again depends on what else goes on; that it is told does not,
    nor may we tell it much more often."""
    return 0 in (recorded, seen) or (seen > 4 * recorded and seen - recorded > 4)


def _between(one: Any, other: Any, path: str) -> Iterator[Difference]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from _between(one.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (mine, yours) in enumerate(zip(one, other, strict=True)):
            yield from _between(mine, yours, f"{path}[{number}]")
    elif one != other:
        yield Difference(path, one, other)


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) < 600 else f"{text[:600]} …"
