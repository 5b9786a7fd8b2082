"""Completion indexes of a Job as the status writes them: `0,2-4`.

Job: text to a set and back. Pure.
Invariant: what is written reads back as the same set; runs of three or more are joined by a dash.
"""

from collections.abc import Iterable


def parse_indexes(text: str | None, completions: int) -> frozenset[int]:
    """Indexes beyond `completions` (the Job was scaled down) are left out."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        if first:
            found.update(range(int(first), int(last if dash else first) + 1))
    return frozenset(match_ for match_ in found if match_ < completions)


def indexes_text(indexes: Iterable[int]) -> str:
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        parts.append(_run(ordered[start], ordered[end]))
        start = end + 1
    return ",".join(parts)


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
