"""Watchdog of the event loop: how long it is held, and by which code.

Job: ask the loop for a sign of life while it has something to do, measure how long it takes, and
    say where it was when it took too long.
Invariant: a hold of HOLD_SECONDS that the question meets is counted, and logged with its place.
Invariant: a loop that has nothing to do is not asked, and the watch sleeps.
Owner: the process; its thread ends with `stop`.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from sampan.core.clock import SystemClock, thread_seconds
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics

log = get_logger(__name__)

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
EVERY_SECONDS = 0.1  # between an answer and the next question, while the loop is busy
IDLE_SECONDS = 10.0  # between looks at a loop that nobody asked anything
BUSY_SHARE = 0.05  # of a processor, from which on it counts as busy
HOLD_SECONDS = 0.05  # no request, object or expression may hold the loop for longer
MOST_PLACES = 200  # that are counted apart
_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_PACKAGE = "sampan"
IMPORT = "import by "


class LoopWatch:
    """A thread beside the loop of whoever makes it: only from outside can a hold be seen while it
    lasts. It measures the machine's time, as the holds do."""

    def __init__(self, metrics: Metrics) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._clock = SystemClock()
        self._over = threading.Event()
        self._roused = threading.Event()
        self._looked_at, self._used_seconds = 0.0, 0.0
        self._delays = metrics.histogram(
            "sampan_event_loop_delay_seconds",
            "How long the event loop took to answer a question from outside.",
            (),
            _SECONDS,
        )
        self._holds = metrics.counter(
            "sampan_event_loop_holds_total",
            "How often the event loop was held for longer than 50 ms, by the place that held it.",
            ("place",),
        )
        metrics.gauge("sampan_event_loop_tasks", "How many tasks the event loop has.").read_from(
            lambda: {(): float(len(asyncio.all_tasks(self._loop)))}
        )
        self._places: set[str] = set()
        self._thread = threading.Thread(target=self._watch, name="sampan-loop-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._roused.set()

    def around(self, handler: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
        """The same handler; whoever asks it something rouses the watch."""

        def handle(asked: Asked) -> Answer:
            if not self._roused.is_set():
                self._roused.set()
            return handler(asked)

        return handle

    def _watch(self) -> None:
        self._is_busy()
        while not self._over.is_set():
            roused = self._roused.wait(IDLE_SECONDS)
            self._roused.clear()
            asks = roused or self._is_busy()
            while asks and not self._over.is_set():
                if not self._ask():
                    return
                asks = not self._over.wait(EVERY_SECONDS) and self._is_busy()

    def _is_busy(self) -> bool:
        """Whether the loop has done something since the last look."""
        now, used = self._clock.monotonic(), thread_seconds(self._loop_thread)
        passed, had = now - self._looked_at, used - self._used_seconds
        self._looked_at, self._used_seconds = now, used
        return had > BUSY_SHARE * passed

    def _ask(self) -> bool:
        """Whether there is still a loop."""
        answered = threading.Event()
        asked = self._clock.monotonic()
        try:
            self._loop.call_soon_threadsafe(answered.set)
        except RuntimeError:
            return False  # the loop is closed
        place = ""
        while not answered.wait(HOLD_SECONDS):
            place = place or self._place()
            if self._over.is_set():
                return False
        took = self._clock.monotonic() - asked
        try:
            self._loop.call_soon_threadsafe(self._note, took, place)
        except RuntimeError:
            return False
        return True

    def _note(self, seconds: float, place: str) -> None:
        self._delays.observe(seconds)
        if seconds < HOLD_SECONDS:
            return
        if place not in self._places and len(self._places) >= MOST_PLACES:
            place = "elsewhere"
        self._places.add(place)
        self._holds.add(place or "unknown")
        # An import happens once, and is nothing that anybody could do something about.
        say = log.info if place.startswith(IMPORT) else log.warning
        say("event loop held", seconds=round(seconds, 3), place=place or "unknown")

    def _place(self) -> str:
        return place_of(sys._current_frames().get(self._loop_thread))


def place_of(frame: FrameType | None) -> str:
    """`api.patch.strategic_patch.maps:57`: the innermost of our own functions; `import by …` where
    it imports something."""
    prefix = ""
    while frame is not None:
        module, function = str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
        if module == "importlib._bootstrap":
            prefix = IMPORT
        is_ours = module.partition(".")[0] == _PACKAGE and module != __name__
        if is_ours and function != "<module>":
            return f"{prefix}{module.removeprefix('sampan.')}.{function}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
