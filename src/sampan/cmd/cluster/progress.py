"""What `sampan up` tells the person who started it: one line per step, with its time.

Job: print steps as they end, colours only on a terminal, and not where NO_COLOR is set.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from sampan.core.clock import Clock

WIDTH = 46
MANY = 5000  # of fewer things nobody waits for a count
MARKS = {"✓": 32, "✗": 31, "!": 33}  # how a line begins, and its colour


def has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR")


def paint(text: str, code: int) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def paint_marks(text: str) -> str:
    """What the Progress of a process without a terminal wrote, for somebody who has one."""
    pattern = rf"^  ([{''.join(MARKS)}]) "
    return re.sub(pattern, lambda found: f"  {paint(found[1], MARKS[found[1]])} ", text, flags=re.M)


class Step:
    """A step under way; `detail` is printed behind its name when it ends."""

    __slots__ = ("_show", "detail")

    def __init__(self, show: Callable[[str], None]) -> None:
        self.detail = ""
        self._show = show

    def count(self, done: int, total: int) -> None:
        """How far it is; seen on a terminal only, and only of what takes a while."""
        if total >= MANY:
            self._show(f"{done:,} of {total:,}".replace(",", " "))


class Progress:
    def __init__(self, stream: TextIO, clock: Clock, began: float | None = None) -> None:
        """`began`: by the clock's monotonic time, where the work began before now."""
        self._stream, self._clock = stream, clock
        self._colours = has_colours(stream)
        self._began = clock.monotonic() if began is None else began
        self._under_way: list[str] = []
        self._waiting: dict[str, list[str]] = {}  # lines, by the step that they come after

    def elapsed_seconds(self) -> float:
        return self._clock.monotonic() - self._began

    @contextmanager
    def step(self, name: str, *, after: str = "") -> Iterator[Step]:
        """The line appears when the step ends, and where one that is under way beside it is named,
        `after` that; one that fails is marked, and the error goes on."""
        began, step = self._clock.monotonic(), Step(lambda text: self._show(name, text))
        mark = self._mark("✗")
        self._under_way.append(name)
        waits = False
        try:
            yield step
            mark = self._mark("✓")
            waits = after in self._under_way
        finally:
            line = self._line(mark, name, step.detail, self._clock.monotonic() - began)
            self._under_way.remove(name)
            if waits:
                self._waiting.setdefault(after, []).append(line)
            else:
                for each in (line, *self._waiting.pop(name, ())):
                    self.say(each)

    def report(self, name: str, detail: str, seconds: float) -> None:
        """A step that another process took."""
        self.say(self._line(self._mark("✓"), name, detail, seconds))

    def say(self, text: str = "") -> None:
        print(text, file=self._stream, flush=True)

    def warn(self, text: str) -> None:
        self.say(f"  {self._mark('!')} {text}")

    def bold(self, text: str) -> str:
        return paint(text, 1) if self._colours else text

    def _show(self, name: str, text: str) -> None:
        """In the line that the step will have when it ends."""
        if self._stream.isatty():
            line = f"  … {name:<14} {text:<{WIDTH}}"
            print(line, end="\r", file=self._stream, flush=True)

    def _line(self, mark: str, name: str, detail: str, seconds: float) -> str:
        took = f"{seconds * 1000:.0f} ms"
        return f"  {mark} {name:<14} {detail:<{WIDTH}} {took:>8}"

    def _mark(self, mark: str) -> str:
        return paint(mark, MARKS[mark]) if self._colours else mark
