"""Regular expressions in linear time: no text makes a pattern run for ever.

Job: run RE2's patterns, by following all ways through them at once.
Invariant: a look at a text costs at most its length times the pattern's.
Invariant: what is remembered of a pattern is bounded, however many texts it sees.
"""

import functools
from collections.abc import Iterator

from sampan.api.cel.libraries.regex_syntax import (
    Anchor,
    Chars,
    Choice,
    Node,
    NotRegex,
    Repeat,
    Sequence,
    parse,
)
from sampan.core.fast_dataclass import dataclass

__all__ = ["NotRegex", "Regex", "compiled"]

MOST_STEPS = 20_000  # of a pattern; repetition multiplies them
MOST_STATES = 2_000
MOST_PATTERNS = 512
_MATCH = -1  # the instruction that ends a way
_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class Take:
    """One character, then on."""

    chars: Chars
    after: int


@dataclass(frozen=True, slots=True)
class Check:
    """On, where this kind of place is."""

    kind: str
    after: int


@dataclass(frozen=True, slots=True)
class Fork:
    """On in each of these ways, the preferred one first."""

    ways: tuple[int, ...]


Instruction = Take | Check | Fork


@functools.lru_cache(maxsize=MOST_PATTERNS)
def compiled(pattern: str) -> "Regex":
    """Raises NotRegex."""
    try:
        return Regex(_Builder(pattern).built(parse(pattern)))
    except RecursionError as error:
        raise NotRegex("expression nests too deeply", pattern) from error


class _Builder:
    """From the last instruction to the first, so that each knows where it goes on."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.instructions: list[Instruction] = []

    def built(self, node: Node) -> tuple[list[Instruction], int]:
        start = self._of(node, _MATCH)
        return self.instructions, start

    def _add(self, instruction: Instruction) -> int:
        if len(self.instructions) >= MOST_STEPS:
            raise NotRegex("expression too large", self._pattern)
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def _of(self, node: Node, after: int) -> int:
        match node:
            case Chars():
                return self._add(Take(node, after))
            case Anchor():
                return self._add(Check(node.kind, after))
            case Sequence():
                for part in reversed(node.parts):
                    after = self._of(part, after)
                return after
            case Choice():
                return self._add(Fork(tuple(self._of(part, after) for part in node.parts)))
            case Repeat():
                return self._repeat(node, after)

    def _repeat(self, node: Repeat, after: int) -> int:
        if node.most is None:
            here = self._add(Fork(()))  # a loop: where it goes is known when its body is there
            body = self._of(node.part, here)
            self.instructions[here] = Fork((body, after) if node.greedy else (after, body))
            after = here
        else:
            end = after
            for _ in range(node.most - node.least):
                body = self._of(node.part, after)
                after = self._add(Fork((body, end) if node.greedy else (end, body)))
        for _ in range(node.least):
            after = self._of(node.part, after)
        return after


class _State:
    """All places that are reached at once, and after what kind of character."""

    __slots__ = ("ends", "next", "places", "previous")

    def __init__(self, places: frozenset[int], previous: str) -> None:
        self.places, self.previous = places, previous
        self.next: dict[str, _State] = {}
        self.ends: bool | None = None  # whether the text may end here


class Regex:
    def __init__(self, program: tuple[list[Instruction], int]) -> None:
        self._instructions, self._start = program
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._matched = _State(frozenset(), "")

    def matches(self, text: str) -> bool:
        """Whether it fits anywhere in the text."""
        state, matched = self._state(frozenset({self._start}), ""), self._matched
        for char in text:
            found = state.next.get(char)
            if found is None:
                found = self._step(state, char)
            if found is matched:
                return True
            state = found
        if state.ends is None:
            state.ends = _MATCH in self._closure(state.places, state.previous, "")
        return state.ends

    def find(self, text: str, at: int = 0) -> tuple[int, int] | None:
        """The first place where it fits, and how much of it by its own preferences."""
        if not at and not self.matches(text):
            return None  # the quick way to most answers
        found: tuple[int, int] | None = None
        ways: list[tuple[int, int]] = []  # (place, where it began), the preferred first
        for here in range(at, len(text) + 1):
            previous, char = text[here - 1 : here] if here else "", text[here : here + 1]
            if found is None:
                ways.append((self._start, here))
            elif not ways:
                break
            going: list[tuple[int, int]] = []
            for place, began in self._ordered(ways, previous, char):
                if place == _MATCH:
                    found = (began, here)
                    break  # what comes after it is preferred less
                one = self._instructions[place]
                if char and isinstance(one, Take) and one.chars.contains(char):
                    going.append((one.after, began))
            ways = going
        return found

    def find_all(self, text: str) -> Iterator[str]:
        at = 0
        last_end = -1
        while at <= len(text):
            found = self.find(text, at)
            if found is None:
                return
            start, end = found
            if end > start or start != last_end:
                yield text[start:end]  # as Go: no empty one right after another
            last_end = end
            at = end if end > start else end + 1

    def _state(self, places: frozenset[int], previous: str) -> _State:
        key = (places, previous)
        found = self._states.get(key)
        if found is None:
            if len(self._states) >= MOST_STATES:
                self._states.clear()
            found = self._states[key] = _State(places, previous)
        return found

    def _step(self, state: _State, char: str) -> _State:
        going = {self._start}
        for place in self._closure(state.places, state.previous, char):
            if place == _MATCH:
                state.next[char] = self._matched
                return self._matched
            one = self._instructions[place]
            if isinstance(one, Take) and one.chars.contains(char):
                going.add(one.after)
        # Of what was before, only this matters to anchors.
        previous = "\n" if char == "\n" else "a" if char in _WORD else "-"
        found = self._state(frozenset(going), previous)
        state.next[char] = found
        return found

    def _closure(self, places: frozenset[int], previous: str, char: str) -> set[int]:
        return {place for place, _ in self._ordered([(one, 0) for one in places], previous, char)}

    def _ordered(
        self, ways: list[tuple[int, int]], previous: str, char: str
    ) -> Iterator[tuple[int, int]]:
        """Every place that needs a character, or ends, in order of preference; each once."""
        seen: set[int] = set()
        waiting = list(reversed(ways))
        while waiting:
            place, began = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            if place == _MATCH:
                yield place, began
                continue
            match self._instructions[place]:
                case Take():
                    yield place, began
                case Check(kind=kind, after=after):
                    if _holds(kind, previous, char):
                        waiting.append((after, began))
                case Fork(ways=further):
                    waiting.extend((one, began) for one in reversed(further))


def _holds(kind: str, previous: str, char: str) -> bool:
    """`previous` and `char` are empty at the ends of the text."""
    if kind == "begin text":
        return not previous
    if kind == "end text":
        return not char
    if kind == "begin line":
        return previous in ("", "\n")
    if kind == "end line":
        return char in ("", "\n")
    boundary = (previous in _WORD) is not (char in _WORD)
    return boundary is (kind == "word")
