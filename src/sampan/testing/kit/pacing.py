"""A cluster's time, seen from its test.

Job: move it where it is virtual, wait in it where it is real.
"""

import time
from collections.abc import Callable
from typing import Any

from sampan.api.rules.durations import long_seconds
from sampan.core.virtual_time.patience import ANYBODY, ARRIVAL_SECONDS
from sampan.testing.kit.expectations import NotAsExpected
from sampan.testing.kit.launcher import Control

FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.005, 0.1


class ClusterClock:
    def __init__(self, control: Control, *, virtual: bool) -> None:
        self._control, self._virtual = control, virtual

    def now(self) -> float:
        """The cluster's wall time, in seconds since 1970."""
        return float(self._control.ask("now")["now"])

    def advance(self, duration: float | str) -> None:
        """Everything that is due until then happens, in order; then returns. Before each step those
        who watch from outside are waited for. For virtual clocks only:
        `@pytest.mark.sampan(clock="virtual")`."""
        if not self._virtual:
            raise ValueError("this cluster's time is real: ask for clock='virtual'")
        self._ask("advance", duration=long_seconds(duration))

    def settle_virtually(self) -> None:
        """After a write, where a history has to repeat itself: what follows from it is done before
        the next one arrives, however long that takes."""
        if self._virtual:
            self._ask("settle")

    def settle(self) -> None:
        """Nobody in the cluster has anything to do now, and its clients are quiet."""
        self._ask("settle", outside=True)

    def expect(self, *clients: str, within: float | str = ARRIVAL_SECONDS) -> None:
        """Those with such words in their User-Agent will watch: time does not move before, so long
        by the machine's time."""
        for name in clients:
            self._ask("expect", name=name, within=long_seconds(within))

    def expect_anybody(self) -> None:
        """Somebody will ask for something."""
        self._ask("expect", name=ANYBODY, within=None)

    def be_patient(self, duration: float | str) -> None:
        """With clients: so long, by the machine's time, somebody who is never quiet holds a step
        up."""
        self._ask("outside", patience=long_seconds(duration))

    def waited(self) -> list[str]:
        """For whom so far: a line for each client."""
        return list(self._ask("outside")["waited"])

    def watches(self) -> int:
        """How many clients have open."""
        return int(self._ask("outside")["watches"])

    def wait_until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether it holds within that time, the cluster's own."""
        return self._virtually(holds, seconds) if self._virtual else _really(holds, seconds)

    def _virtually(self, holds: Callable[[], bool], seconds: float) -> bool:
        """From timer to timer, as far as it is allowed; the question is asked when all is quiet."""
        self._ask("settle")
        if holds():
            return True
        self._ask("settle", outside=True)
        left = seconds
        while not holds():
            if left <= 0:
                # Its clients live by another time: who is slow by that one gets some more of it.
                there = self._ask("outside")
                return bool(there["known"]) and _really(holds, there["patience"])
            moved = float(self._ask("step", most=left)["seconds"])
            left = left - moved if moved > 0 else 0.0
        return True

    def _ask(self, do: str, **more: Any) -> dict[str, Any]:
        answer = self._control.ask(do, None, **more)
        if missing := answer.get("missing"):
            raise NotAsExpected(
                f"expected that {', '.join(missing)} watches; "
                f"watching are {'; '.join(self.waited()) or 'none'}"
            )
        return answer


def _really(holds: Callable[[], bool], seconds: float) -> bool:
    until, pause = time.monotonic() + seconds, FIRST_PAUSE_SECONDS
    while not holds():
        if time.monotonic() >= until:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, LAST_PAUSE_SECONDS)
    return True
