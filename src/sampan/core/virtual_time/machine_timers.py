"""Timers by the machine's time, in a loop whose own time is virtual.

Job: keep them in their order; say which are due, and when the next one is.
Invariant: a cancelled timer holds nothing, and there are never many more of them than live ones.
"""

import heapq
from collections.abc import Callable, Sequence
from typing import Any

SPARED = 64  # cancelled ones that may lie around


class MachineTimer:
    __slots__ = ("args", "callback", "owner", "when")

    def __init__(
        self, owner: "MachineTimers", when: float, callback: Callable[..., object], args: Any
    ) -> None:
        self.owner: MachineTimers | None = owner
        self.when, self.callback, self.args = when, callback, args

    def __lt__(self, other: "MachineTimer") -> bool:
        return self.when < other.when

    def cancel(self) -> None:
        """Also of one that has rung."""
        owner, self.owner = self.owner, None
        if owner is not None:
            self.callback, self.args = _nothing, ()
            owner.note_cancelled()


class MachineTimers:
    def __init__(self) -> None:
        self._heap: list[MachineTimer] = []
        self._cancelled = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, when: float, callback: Callable[..., object], *args: Any) -> MachineTimer:
        timer = MachineTimer(self, when, callback, args)
        heapq.heappush(self._heap, timer)
        return timer

    def next_when(self) -> float | None:
        return self._heap[0].when if self._heap else None

    def due(self, now: float) -> Sequence[MachineTimer]:
        """The earliest first; they are not remembered."""
        found = []
        while self._heap and self._heap[0].when <= now:
            timer = heapq.heappop(self._heap)
            if timer.owner is None:
                self._cancelled -= 1
                continue
            timer.owner = None
            found.append(timer)
        return found

    def note_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > SPARED + len(self._heap) // 2:
            self._heap = [timer for timer in self._heap if timer.owner is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0


def _nothing() -> None:
    pass
