"""Cost of an evaluation, counted as cel-go does.

Job: the limits that Kubernetes sets, a budget that several expressions share, and how size costs.
Invariant: a budget is never overdrawn by more than one step.
"""

from collections.abc import Callable, Sized
from math import ceil

PER_CALL = 1_000_000  # one expression, once
PER_POLICY = 10_000_000  # all expressions of a policy or of a rule set, for one request
PER_MATCH_CONDITIONS = 2_500_000

STRING_FACTOR = 0.1  # a character read costs a tenth of a step
REGEX_FACTOR = 0.25
LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40


# Asked every now and then while an evaluation runs; raises where it shall not go on.
Interrupt = Callable[[], None]


class Budget:
    """What is left for the expressions that share it, and who may stop them before it is used."""

    __slots__ = ("interrupt", "left")

    def __init__(self, left: int = PER_POLICY, interrupt: Interrupt | None = None) -> None:
        self.left, self.interrupt = left, interrupt


def read(value: object, factor: float = STRING_FACTOR) -> int:
    """For one pass over a text, list or map; anything else is one step."""
    return ceil(len(value) * factor) if isinstance(value, Sized) else 1


def traversal_cost(first: object, *_rest: object) -> int:
    """Over a list one step for each item; over a text by its length."""
    return read(first) if isinstance(first, str | bytes) else read(first, 1)


def first_read(first: object, *_rest: object) -> int:
    return read(first)


def first_read_twice(first: object, *_rest: object) -> int:
    return read(first, 2 * STRING_FACTOR)


def second_read(_first: object, second: object, *_rest: object) -> int:
    return read(second)


def search_cost(text: object, part: object) -> int:
    return read(text) * read(part)


def match_cost(text: object, pattern: object, *_rest: object) -> int:
    length = len(text) if isinstance(text, Sized) else 0
    return ceil((1 + length) * STRING_FACTOR) * read(pattern, REGEX_FACTOR)


def replace(text: object, old: object, new: object, most: object = -1) -> int:
    """What comes out is paid for, too: it may be much longer than what went in."""
    price = first_read_twice(text)
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str)):
        return price
    times = text.count(old)
    if isinstance(most, int) and 0 <= most < times:
        times = most
    return max(price, ceil((len(text) + times * (len(new) - len(old))) * STRING_FACTOR))


def join(parts: object, between: object = "") -> int:
    price = first_read_twice(parts)
    if not isinstance(parts, list | tuple) or not isinstance(between, str):
        return price
    size = sum(len(part) for part in parts if isinstance(part, str)) + len(parts) * len(between)
    return max(price, ceil(size * STRING_FACTOR))
