"""Is the loop free? One loop serves everybody: whoever holds it holds everybody up.

Job: ask the loop for a sign of life now and then, measure how long it takes, and say where it was
    when it took too long.
Invariant: a hold of HOLD_SECONDS that the question meets is counted, and logged with its place.
Owner: the process; its thread ends with `stop`.
"""

import asyncio
import sys
import threading
from types import FrameType

from sampan.core.clock import SystemClock
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics

log = get_logger(__name__)

EVERY_SECONDS = 0.1  # between an answer and the next question
HOLD_SECONDS = 0.05  # no request, object or expression may hold the loop for longer
MOST_PLACES = 200  # that are counted apart
_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_PACKAGE = "sampan"


class LoopWatch:
    """A thread beside the loop of whoever makes it: only from outside can a hold be seen while it
    lasts. It measures the machine's time, as the holds do."""

    def __init__(self, metrics: Metrics) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._clock = SystemClock()
        self._over = threading.Event()
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
        self._places: set[str] = set()
        self._thread = threading.Thread(target=self._watch, name="sampan-loop-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            answered = threading.Event()
            asked = self._clock.monotonic()
            try:
                self._loop.call_soon_threadsafe(answered.set)
            except RuntimeError:
                return  # the loop is closed
            place = ""
            while not answered.wait(HOLD_SECONDS):
                place = place or self._place()
                if self._over.is_set():
                    return
            took = self._clock.monotonic() - asked
            try:
                self._loop.call_soon_threadsafe(self._note, took, place)
            except RuntimeError:
                return

    def _note(self, seconds: float, place: str) -> None:
        self._delays.observe(seconds)
        if seconds < HOLD_SECONDS:
            return
        if place not in self._places and len(self._places) >= MOST_PLACES:
            place = "elsewhere"
        self._places.add(place)
        self._holds.add(place or "unknown")
        log.warning("event loop held", seconds=round(seconds, 3), place=place or "unknown")

    def _place(self) -> str:
        return place_of(sys._current_frames().get(self._loop_thread))


def place_of(frame: FrameType | None) -> str:
    """`api.patch.strategic_patch.maps:57`: the innermost of our own functions."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] == _PACKAGE and module != __name__:
            return f"{module.removeprefix('sampan.')}.{frame.f_code.co_name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
