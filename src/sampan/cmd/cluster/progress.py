"""What `sampan up` tells the person who started it: one line per step, with its time.

Job: print steps as they end, colours only on a terminal.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from sampan.core.clock import Clock

WIDTH = 46


class Step:
    """A step under way; `detail` is printed behind its name when it ends."""

    __slots__ = ("detail",)

    def __init__(self) -> None:
        self.detail = ""


class Progress:
    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream, self._clock = stream, clock
        self._colours = stream.isatty()
        self._began = clock.monotonic()

    def elapsed_seconds(self) -> float:
        return self._clock.monotonic() - self._began

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """The line appears when the step ends; one that fails is marked, and the error goes on."""
        began, step = self._clock.monotonic(), Step()
        mark = self._paint("✗", 31)
        try:
            yield step
            mark = self._paint("✓", 32)
        finally:
            self._line(mark, name, step.detail, began)

    def say(self, text: str = "") -> None:
        print(text, file=self._stream, flush=True)

    def warn(self, text: str) -> None:
        self.say(f"  {self._paint('!', 33)} {text}")

    def bold(self, text: str) -> str:
        return self._paint(text, 1)

    def _line(self, mark: str, name: str, detail: str, began: float) -> None:
        took = f"{(self._clock.monotonic() - began) * 1000:.0f} ms"
        self.say(f"  {mark} {name:<14} {detail:<{WIDTH}} {took:>8}")

    def _paint(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours else text
