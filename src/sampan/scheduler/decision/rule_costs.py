"""What each rule of one decision cost.

Job: seconds by extension point and plugin, while one decision is made.
Owner: the scheduler's loop, which measures where no crowd waits: asking the time costs, too.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from sampan.core.clock import Clock

FILTER, SCORE = "Filter", "Score"
P = ParamSpec("P")
T = TypeVar("T")


class RuleCosts:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.seconds: dict[tuple[str, str], float] = {}

    def timed(
        self, key: tuple[str, str], ask: Callable[P, T], *args: P.args, **more: P.kwargs
    ) -> T:
        began = self._clock.monotonic()
        answer = ask(*args, **more)
        spent = self._clock.monotonic() - began
        self.seconds[key] = self.seconds.get(key, 0.0) + spent
        return answer

    def text(self) -> str:
        """The dearest first."""
        ordered = sorted(self.seconds.items(), key=lambda item: -item[1])
        return ", ".join(f"{point} {name} {1e6 * cost:.0f} µs" for (point, name), cost in ordered)
