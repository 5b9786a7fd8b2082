"""How often each line runs: what grows faster than the work shows at small sizes, and by name.

Job: count lines of our own code while something runs; of the counts for N, 2N and 4N say which
    lines grow faster than N.
Invariant: what is the same for every N, however much, does not count.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import sampan
from sampan.core.fast_dataclass import dataclass

SOURCES = str(Path(sampan.__file__).parent)
# From 2N to 4N twice as much as from N to 2N is linear, four times is quadratic.
MOST = 2.9
MOST_WHOLE = 2.3  # times as much at 4N as at 2N, with what is the same for every N
# What c * N * N is more than linear here is 6 * c * N * N: this is the least c that counts.
LEAST_SHARE = 1 / 4
# What looks steep while N is small, and ends at a bound that is larger than it is here.
BOUNDED = {
    "KindCache._keep": "LINES_KEPT and WINDOW_LEAST: the newest records are not cleared away",
    "KindCache.forget_old": "likewise, and some at a time",
    "Record.forget_lines": "likewise",
    "Event.forget_line": "likewise",
    "refusing": "MOST_NAMED: so many nodes are named in a record",
    "best_of": "BEST: so many nodes are in a record",
    "lacking": "the pods of one node",
    "PodWorkers.active_pods": "the pods of one node",
    "Allocations.applied": "the pods of one node",
    "SyncLoop._holding": "the pods of one node",
    "SyncLoop._requests_of": "the pods of one node",
    "Quantity.__bool__": "the pods of one node",
    "Quantity.__add__": "the pods of one node",
}

Line = tuple[CodeType, int]
Counts = Counter[tuple[str, str, int]]  # file, function, line


@contextmanager
def counted(into: Counts) -> Iterator[None]:
    """Of this thread."""
    lines: dict[Line, int] = {}

    def local(frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            line = (frame.f_code, frame.f_lineno)
            lines[line] = lines.get(line, 0) + 1
        return local

    def trace(frame: FrameType, _event: str, _arg: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(SOURCES) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        for (code, line), count in lines.items():
            file = code.co_filename.removeprefix(SOURCES + "/")
            into[file, code.co_qualname, line] += count


@dataclass(frozen=True, slots=True)
class Growth:
    where: str
    counts: tuple[int, ...]
    ratio: float

    def __str__(self) -> str:
        return f"{self.where}: {', '.join(map(str, self.counts))} times ({self.ratio:.1f})"


def steep(small: Counts, middle: Counts, large: Counts, n: int) -> list[Growth]:
    """The functions whose lines grow faster than N, by their steepest line."""
    found: dict[str, Growth] = {}
    for key, most in large.items():
        first, second = middle[key] - small[key], most - middle[key]
        if key[1].partition(".<locals>")[0] in BOUNDED:
            continue
        if second - 2 * max(first, 0) < 6 * LEAST_SHARE * n * n:
            continue
        ratio = second / max(first, 1)
        if most < MOST_WHOLE * middle[key]:
            continue  # work that is done together now and then, by chance
        where = f"{key[0]}:{key[2]} {key[1]}"
        function = f"{key[0]} {key[1]}"
        if ratio > MOST and (function not in found or found[function].counts[-1] < most):
            found[function] = Growth(where, (small[key], middle[key], most), ratio)
    return sorted(found.values(), key=lambda growth: -growth.counts[-1])
