"""`make bench-growth`: how processor time and memory grow with N, workload by workload.

Job: each workload of tests/growth at three sizes, a factor of four apart, each run in a process of
    its own; print time, memory and their exponents; fail where what should be linear is not.
    `ONLY=text` takes those with the text in their name, `N=` the smallest size. `--lines` counts
    how many lines of our code run instead, on virtual time: the same on any machine, however busy.
"""

import argparse
import math
import os
import pickle
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from tests.bench.growth_plot import Curve, exponent_text, svg, table
from tests.growth.runs import Spent, keys, lines_of, schema, spent_by
from tests.growth.workloads import WORKLOADS, Workload

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- growth -->", "<!-- /growth -->"
FACTOR = 4
# Rounds of all sizes, one after the other: a machine that becomes slower does so for all of them.
# Each round has an exponent; the one in the middle counts.
ROUNDS, SIZES = 3, 3
MOST = 1.15
# What our lines do grows as they do. Where they are linear, up to here it is the machine: objects
# that no longer fit into its caches. Above that somebody's C code looks at everything.
MOST_OF_MACHINE = 1.4
LINES_N = 16  # at which lines are counted: the same as at any other size, and sooner
# Less than this is noise, not growth.
LEAST_SECONDS, LEAST_BLOCKS, LEAST_LINES = 0.05, 20_000, 20_000


@dataclass(frozen=True, slots=True)
class Figures:
    workload: Workload
    sizes: Sequence[int]
    rounds: Sequence[Sequence[Spent]]
    lines: float | None = None  # counted where the processor time is steep

    @property
    def spent(self) -> list[Spent]:
        """Of each size the least: whatever else runs on the machine makes only more."""
        return [
            Spent(
                min(run.wall_seconds for run in runs),
                min(run.cpu_seconds for run in runs),
                min(run.kib for run in runs),
                min(run.collector_seconds for run in runs),
                min(run.blocks for run in runs),
            )
            for runs in zip(*self.rounds, strict=True)
        ]

    @property
    def cpu(self) -> float | None:
        return middle(
            exponent([spent.cpu_seconds for spent in found], LEAST_SECONDS) for found in self.rounds
        )

    @property
    def memory(self) -> float | None:
        return middle(exponent_of_blocks([run.blocks for run in found]) for found in self.rounds)

    @property
    def steep(self) -> bool:
        most = MOST if self.lines is None or self.lines > MOST else MOST_OF_MACHINE
        return is_above(self.cpu, most) or is_above(self.memory, MOST)

    def curve(self) -> Curve:
        seconds = [spent.cpu_seconds for spent in self.spent]
        kib = self.spent[-1].kib
        return Curve(self.workload.name, self.sizes, seconds, kib, self.cpu, self.memory)

    def line(self) -> str:
        largest = self.spent[-1]
        each = largest.cpu_seconds / self.sizes[-1] * 1e6
        return (
            f"{self.workload.name:<32} {self.sizes[-1]:>6} {largest.wall_seconds:>8.2f}"
            f" {largest.cpu_seconds:>8.2f} {each:>9.0f} {largest.kib / 1024:>8.1f}"
            f" {exponent_text(self.cpu):>6} {exponent_text(self.memory):>6}"
            f" {largest.collector_seconds / self.sizes[-1] * 1e6:>8.0f}"
            f"{'' if self.lines is None else f'  lines {exponent_text(self.lines)}'}"
            f"{'  steep' if self.steep else ''}"
        )


def exponent(costs: Sequence[float], least: float) -> float | None:
    """Of what N costs more than less: what it costs anyway is not part of it."""
    first, second = (after - before for before, after in pairwise(costs))
    if first <= 0 or second < least:
        return None
    return math.log(second / first, FACTOR)


def exponent_of_blocks(counts: Sequence[int]) -> float | None:
    """Of what N has more than before it began: nothing of that was there anyway."""
    before, after = counts[-2:]
    if before <= 0 or after < LEAST_BLOCKS:
        return None
    return math.log(after / before, FACTOR)


def middle(exponents: Iterable[float | None]) -> float | None:
    """None where most are too little to tell."""
    found = list(exponents)
    known = sorted(item for item in found if item is not None)
    return known[len(known) // 2] if 2 * len(known) > len(found) else None


def is_above(found: float | None, most: float) -> bool:
    return found is not None and found > most


def judged(workload: Workload, least: int) -> Figures:
    sizes = [least * workload.size * FACTOR**power for power in range(SIZES)]
    rounds = [[measured(workload, n) for n in sizes] for _ in range(ROUNDS)]
    figures = Figures(workload, sizes, rounds)
    if not is_above(figures.cpu, MOST):
        return figures
    return Figures(workload, sizes, rounds, exponent_of_lines(workload, LINES_N)[1])


def exponent_of_lines(workload: Workload, least: int) -> tuple[list[int], float | None]:
    """How many run, by size, and how that grows."""
    counts = [lines_of(workload, least * FACTOR**power).total() for power in range(SIZES)]
    return counts, exponent(counts, LEAST_LINES)


def measured(workload: Workload, n: int) -> Spent:
    """In a forked process: nothing of one workload is left for the next."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        spent = spent_by(workload, n)
        with os.fdopen(write, "wb") as answer:
            pickle.dump(spent, answer)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        found = answer.read()
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(f"{workload.name} with {n}: ended with {status}")
    spent = pickle.loads(found)
    assert isinstance(spent, Spent)
    return spent


def main() -> int:
    parser = argparse.ArgumentParser(description="how cost grows")
    parser.add_argument("--n", type=int, default=128, help="the smallest size")
    parser.add_argument("--write", action="store_true", help="table and plot, into docs/")
    parser.add_argument("--only", default="", help="part of a workload's name")
    parser.add_argument("--lines", action="store_true", help="count lines, not time")
    given = parser.parse_args()
    chosen = [workload for workload in WORKLOADS if given.only in workload.name]
    if given.lines:
        return 1 if print_lines(chosen, given.n) else 0
    keys(), schema()
    print(f"{'workload':<32} {'N':>6} {'s':>8} {'CPU s':>8} {'CPU µs/N':>9} {'MiB':>8}", end="")
    print(f" {'CPU^':>6} {'mem^':>6} {'GC µs/N':>8}", flush=True)
    curves, steep = [], 0
    for workload in chosen:
        figures = judged(workload, given.n)
        steep += figures.steep
        curves.append(figures.curve())
        print(figures.line(), flush=True)
    if given.write:
        write(curves)
    return 1 if steep else 0


def print_lines(workloads: Sequence[Workload], least: int) -> int:
    """By lines that run; how many workloads are steep."""
    print(f"{'workload':<32} {'N':>6} {'lines/N':>9} {'lines^':>6}", flush=True)
    steep = 0
    for workload in workloads:
        counts, found = exponent_of_lines(workload, least)
        bad = is_above(found, MOST)
        steep += bad
        largest = least * FACTOR ** (SIZES - 1)
        each = counts[-1] // largest
        print(f"{workload.name:<32} {largest:>6} {each:>9} {exponent_text(found):>6}", end="")
        print("  steep" if bad else "", flush=True)
    return steep


def write(curves: Sequence[Curve]) -> None:
    """The plot, and the table between its marks in docs/performance.md."""
    (DOCS / "growth.svg").write_text(svg(curves))
    page = DOCS / "performance.md"
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"{page} has no {BEGIN} and {END}"
    page.write_text(f"{before}{begin}\n{table(curves)}\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main())
