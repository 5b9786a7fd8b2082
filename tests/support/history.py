"""What clients were told, written down, and what may not be in it.

Job: pure checkers over recorded histories; each returns the faults that it found, in words.
A history is about numbered values: whoever writes a name gives each of its values the number after
the last one that is stored, so that a value missing from a watch leaves a gap.
"""

import hashlib
from collections.abc import Iterable, Mapping

from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Value:
    number: int
    revision: int


@dataclass(frozen=True, slots=True)
class Answered:
    """A write that was answered; nothing may undo it but another write."""

    name: str
    value: Value
    known_before: int  # the newest revision that anybody had been told of when it was sent


@dataclass(frozen=True, slots=True)
class Listed:
    revision: int
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Seen:
    kind: str  # ADDED, MODIFIED, DELETED
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Bookmark:
    revision: int


StageEvent = Listed | Seen | Bookmark


class WatcherCheck:
    """One watcher's story: a list, changes, perhaps another list …; ordered, unique, complete."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.values: dict[str, Value] = {}
        self._at = 0
        self._last: dict[str, int] = {}  # the newest number of each name that is known

    def take(self, told: StageEvent) -> None:
        match told:
            case Listed(revision, values):
                self._expect(revision >= self._at, told, f"a list after revision {self._at}")
                self._at, self.values = revision, dict(values)
                self._last = {name: value.number for name, value in values.items()}
            case Bookmark(revision):
                self._expect(revision >= self._at, told, f"after revision {self._at}")
                self._at = max(self._at, revision)
            case Seen(kind, name, value):
                self._expect(value.revision > self._at, told, f"after revision {self._at}")
                self._at = max(self._at, value.revision)
                self._change(told, kind, name, value)

    def _change(self, told: Seen, kind: str, name: str, value: Value) -> None:
        there = name in self.values
        self._expect(there == (kind != "ADDED"), told, "there" if there else "not there")
        last = self._last.get(name)
        if last is not None:
            right = last if kind == "DELETED" else last + 1
            self._expect(value.number == right, told, f"number {right} should come")
        self._last[name] = value.number
        if kind == "DELETED":
            self.values.pop(name, None)
        else:
            self.values[name] = value

    def _expect(self, right: bool, told: StageEvent, otherwise: str) -> None:
        if not right:
            self.faults.append(f"{told}: {otherwise}")


def watch_faults(story: Iterable[StageEvent]) -> list[str]:
    check = WatcherCheck()
    for told in story:
        check.take(told)
    return check.faults


def unseen(story: Iterable[StageEvent], answered: Iterable[Answered]) -> list[str]:
    """Answered writes that a watcher must have been told of, and was not."""
    story = list(story)
    spans = spans_of(story)
    seen = {(told.name, told.value) for told in story if isinstance(told, Seen)}
    return [
        f"{item} was not seen"
        for item in answered
        if (item.name, item.value) not in seen
        and any(after < item.value.revision <= upto for after, upto in spans)
    ]


def spans_of(story: Iterable[StageEvent]) -> list[tuple[int, int]]:
    """(after, upto]: what a watcher was told everything of, from each of its lists on."""
    spans: list[tuple[int, int]] = []
    for told in story:
        match told:
            case Listed(revision, _):
                spans.append((revision, revision))
            case Bookmark(revision):
                spans[-1] = (spans[-1][0], revision)
            case Seen(_, _, value):
                spans[-1] = (spans[-1][0], value.revision)
    return spans


def revision_faults(answered: Iterable[Answered]) -> list[str]:
    """A write that was sent when a revision was known gets a later one; none is given twice."""
    faults, given = [], set()
    for item in answered:
        if item.value.revision <= item.known_before:
            faults.append(f"{item} went back")
        if item.value.revision in given:
            faults.append(f"{item}: the revision was given before")
        given.add(item.value.revision)
    return faults


def whole(number: int, size: int) -> dict[str, str]:
    """A value that cannot be half there without being found out."""
    filler = hashlib.sha256(str(number).encode()).hexdigest() * (size // 64 + 1)
    return {"number": str(number), "filler": filler[:size], "check": _check(number, size)}


def number_of(data: Mapping[str, str]) -> int:
    """Raises AssertionError where the value is not whole."""
    number = int(data["number"])
    assert dict(data) == whole(number, len(data["filler"])), f"half a value: {dict(data)}"
    return number


def _check(number: int, size: int) -> str:
    return hashlib.sha256(f"{number}/{size}".encode()).hexdigest()
