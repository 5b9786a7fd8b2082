"""A cluster's time, seen from its test.

Job: move it where it is virtual, wait in it where it is real.
"""

import time
from collections.abc import Callable

from sampan.api.rules.durations import long_seconds
from sampan.testing.kit.launcher import Control

FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.005, 0.1


class ClusterClock:
    def __init__(self, control: Control, *, virtual: bool) -> None:
        self._control, self._virtual = control, virtual

    def now(self) -> float:
        """The cluster's wall time, in seconds since 1970."""
        return float(self._control.ask("now")["now"])

    def advance(self, duration: float | str) -> None:
        """Everything that is due until then happens, in order; then returns. For virtual clocks
        only: `@pytest.mark.sampan(clock="virtual")`."""
        if not self._virtual:
            raise ValueError("this cluster's time is real: ask for clock='virtual'")
        self._control.ask("advance", None, duration=long_seconds(duration))

    def settle_virtually(self) -> None:
        """After a write, where a history has to repeat itself: what follows from it is done before
        the next one arrives, however long that takes."""
        if self._virtual:
            self._control.ask("settle")

    def settle(self) -> None:
        self._control.ask("settle")

    def wait_until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether it holds within that time, the cluster's own."""
        return self._virtually(holds, seconds) if self._virtual else self._really(holds, seconds)

    def _really(self, holds: Callable[[], bool], seconds: float) -> bool:
        until, pause = time.monotonic() + seconds, FIRST_PAUSE_SECONDS
        while not holds():
            if time.monotonic() >= until:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, LAST_PAUSE_SECONDS)
        return True

    def _virtually(self, holds: Callable[[], bool], seconds: float) -> bool:
        """From timer to timer, as far as it is allowed; the question is asked when all is quiet."""
        self._control.ask("settle")
        left = seconds
        while not holds():
            if left <= 0:
                return False
            moved = float(self._control.ask("step", None, most=left)["seconds"])
            left = left - moved if moved > 0 else 0.0
        return True
