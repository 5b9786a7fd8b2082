"""Completion indexes of a Job as ordered intervals; the status writes them `0,2-4`.

Job: text to intervals and back, members, unions, what is missing. Pure.
Invariant: intervals are in order and never touch; what is written reads back as the same.
Invariant: the cost is that of the intervals, never that of the numbers in them: a Job may have two
    billion completions.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice

from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass

Interval = tuple[int, int]  # first and last


@dataclass(frozen=True, slots=True)
class Indexes:
    intervals: tuple[Interval, ...] = ()

    def __contains__(self, index: int) -> bool:
        at = bisect_right(self.intervals, index, key=lambda interval: interval[0]) - 1
        return at >= 0 and index <= self.intervals[at][1]

    def __or__(self, other: "Indexes") -> "Indexes":
        if not other.intervals:
            return self
        joined: list[Interval] = []
        for first, last in sorted((*self.intervals, *other.intervals)):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        return Indexes(tuple(joined))

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __str__(self) -> str:
        return ",".join(_interval_text(first, last) for first, last in self.intervals)

    def total(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def shared_with(self, other: "Indexes") -> int:
        """How many indexes both have."""
        return self.total() + other.total() - (self | other).total()

    def missing(self, completions: int, count: int) -> list[int]:
        """The first `count` indexes below `completions` that are not among these."""
        return list(islice(self._gaps(completions), max(0, count)))

    def _gaps(self, completions: int) -> Iterator[int]:
        candidate = 0
        for first, last in (*self.intervals, (completions, completions)):
            yield from range(candidate, min(first, completions))
            candidate = max(candidate, last + 1)


NO_INDEXES = Indexes()


def indexes_of(indexes: Iterable[int]) -> Indexes:
    return Indexes() | Indexes(tuple((index, index) for index in sorted(set(indexes))))


def parse_indexes(text: str | None, completions: int) -> Indexes:
    """Indexes beyond `completions` (the Job was scaled down) are left out, as are parts that make
    no sense."""
    found: list[Interval] = []
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        if not is_digits(first) or (dash and not is_digits(last)):
            continue
        begin, end = int(first), min(int(last if dash else first), completions - 1)
        if begin <= end:
            found.append((begin, end))
    return Indexes() | Indexes(tuple(found))


def _interval_text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
