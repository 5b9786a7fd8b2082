"""Lists of completion indexes in the form of a Job's status and policies: `0,2-4`.

Job: what is wrong with one, how many indexes it has, where two overlap. Pure.
Invariant: the cost is that of the text, never that of the numbers in it.
"""

from collections.abc import Iterable

from sampan.core.digits import is_digits


def trouble_of(text: str, completions: int) -> str:
    """What is wrong with a list of indexes, as upstream words it; empty where nothing is."""
    last: int | None = None
    for part in text.split(",") if text else ():
        ends = part.split("-")
        if len(ends) > 2:
            return (
                f'the fragment "{part}" violates the requirement that an index interval can have at'
                " most two parts separated by '-'"
            )
        for end in ends:
            if not is_digits(end):
                return f'cannot convert string to integer for index: "{end}"'
            if int(end) >= completions:
                return f'too large index: "{end}"'
        for number in map(int, ends):
            if last is not None and last >= number:
                return f"non-increasing order, previous: {last}, current: {number}"
            last = number
    return ""


def count_of(text: str) -> int:
    """Of a list without trouble."""
    return sum(last - first + 1 for first, last in _intervals_in(text))


def overlap_of(one: str, other: str, completions: int | None) -> int | None:
    """The first index that is in both lists; None where there is none, or one is in disorder."""
    if completions is None or any(trouble_of(text, completions) for text in (one, other)):
        return None
    left, right = list(_intervals_in(one)), list(_intervals_in(other))
    at = 0
    for start, end in left:
        while at < len(right) and right[at][1] < start:
            at += 1
        if at < len(right) and right[at][0] <= end:
            return max(start, right[at][0])
    return None


def _intervals_in(text: str) -> Iterable[tuple[int, int]]:
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        yield int(first), int(last or first)
