"""Requirements on labels, and questions out of them.

Job: what one term of a label selector asks for, and all of a selector's as one question. Pure.
Invariant: a question costs by the labels that are asked about, not by requirements, of which a
    request may bring thousands.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from sampan.core.digits import is_digits, whole_number
from sampan.core.fast_dataclass import dataclass

Operator = Literal["=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt"]
Labels = Mapping[str, str]
Question = Callable[[Labels], bool]

MANY = 8  # requirements, from which on they are merged by key


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{self.values[0]}"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


def question_of(requirements: tuple[Requirement, ...]) -> Question:
    """Whether labels meet all of them."""
    if len(requirements) > MANY:
        return _Many(requirements).matches
    questions = [_compile(requirement) for requirement in requirements]
    if not questions:
        return lambda labels: True
    if len(questions) == 1:
        return questions[0]
    return lambda labels: all(question(labels) for question in questions)


def _compile(one: Requirement) -> Question:
    key, values = one.key, frozenset(one.values)
    match one.operator:
        case "=" | "==":
            (value,) = values
            return lambda labels: labels.get(key) == value
        case "!=":
            (value,) = values
            return lambda labels: labels.get(key) != value
        case "in":
            return lambda labels: labels.get(key) in values
        case "notin":
            return lambda labels: labels.get(key) not in values
        case "exists":
            return lambda labels: key in labels
        case "!":
            return lambda labels: key not in labels
        case "gt" | "lt":
            limit, greater = whole_number(one.values[0]), one.operator == "gt"
            return lambda labels: _beyond(labels.get(key), limit, greater)


class _Many:
    """Requirements by the thousand: merged, once there is a second question. Who asks one selector
    after the other, each once, needs no more of each than the first requirement that does not
    hold."""

    __slots__ = ("_is_asked", "_merged", "_requirements")

    def __init__(self, requirements: tuple[Requirement, ...]) -> None:
        self._requirements = requirements
        self._is_asked = False
        self._merged: _Merged | None = None

    def matches(self, labels: Labels) -> bool:
        if self._merged is None:
            if not self._is_asked:
                self._is_asked = True
                return all(_holds(requirement, labels) for requirement in self._requirements)
            self._merged = _Merged(self._requirements)
        return self._merged.matches(labels)


def _holds(one: Requirement, labels: Labels) -> bool:
    """What `_compile` makes a question of, asked once."""
    value = labels.get(one.key)
    match one.operator:
        case "=" | "==" | "in":
            return value in one.values and value is not None
        case "!=" | "notin":
            return value is None or value not in one.values
        case "exists":
            return value is not None
        case "!":
            return value is None
        case "gt" | "lt":
            return _beyond(value, whole_number(one.values[0]), one.operator == "gt")


class _Merged:
    """Many requirements, merged by key: a question costs by the labels, not by the requirements,
    of which a request may bring thousands."""

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._asked: set[str] = set()
        self._needed: set[str] = set()  # of those, the ones that must be there
        self._absent: set[str] = set()
        self._allowed: dict[str, frozenset[str]] = {}
        self._refused: dict[str, frozenset[str]] = {}
        self._bounds: dict[tuple[str, bool], int] = {}  # of numbers: (key, greater) → the limit
        for requirement in requirements:
            self._add(requirement)
            self._asked.add(requirement.key)
        # Where nothing but values is asked for, one of each label, as of a map of labels.
        self._equal: dict[str, str] | None = None
        one_each = self._asked == self._allowed.keys() and not (self._refused or self._absent)
        if one_each and not self._bounds and all(len(one) == 1 for one in self._allowed.values()):
            self._equal = {key: value for key, (value,) in self._allowed.items()}

    def matches(self, labels: Labels) -> bool:
        if self._equal is not None:
            return self._equal.items() <= labels.items()
        if len(self._needed) > len(labels) or not self._needed <= labels.keys():
            return False
        asked = self._asked
        return all(self._fits(key, labels[key]) for key in labels if key in asked)

    def _add(self, requirement: Requirement) -> None:
        key, values = requirement.key, frozenset(requirement.values)
        match requirement.operator:
            case "=" | "==" | "in":
                self._allowed[key] = self._allowed.get(key, values) & values
            case "!=" | "notin":
                known_values = self._refused.get(key)
                self._refused[key] = values if known_values is None else known_values | values
                return
            case "!":
                self._absent.add(key)
                return
            case "gt" | "lt":
                limit, greater = whole_number(requirement.values[0]), requirement.operator == "gt"
                known = self._bounds.setdefault((key, greater), limit)
                self._bounds[key, greater] = max(known, limit) if greater else min(known, limit)
        self._needed.add(key)

    def _fits(self, key: str, value: str) -> bool:
        if key in self._absent or value in self._refused.get(key, ()):
            return False
        if key in self._allowed and value not in self._allowed[key]:
            return False
        bounds = ((greater, self._bounds.get((key, greater))) for greater in (True, False))
        return all(limit is None or _beyond(value, limit, greater) for greater, limit in bounds)


def _beyond(text: str | None, limit: int, greater: bool) -> bool:
    number = go_integer(text)
    if number is None:
        return False
    return number > limit if greater else number < limit


def go_integer(text: str | None) -> int | None:
    """As Go's ParseInt: an optional sign and digits that fit in 64 bits."""
    if not text or not is_digits(text.lstrip("+-")) or len(text) > 20:
        return None
    if len(text) - len(text.lstrip("+-")) > 1:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
