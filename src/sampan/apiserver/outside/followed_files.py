"""Configuration files that are followed while the server runs.

Job: look at a file now and then; hand on what it says when it says something else.
Invariant: a file that means nothing changes nothing: what was good before goes on.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics

log = get_logger(__name__)

LOOK_SECONDS = 60.0  # as upstream's
T = TypeVar("T")


class Source(Generic[T]):
    """A file, and what its text means. Both raise ValueError or OSError."""

    def __init__(self, read: Callable[[], str], parse: Callable[[str], T]) -> None:
        self.read, self.parse = read, parse

    def now(self) -> T:
        return self.parse(self.read())


class Followed(Generic[T]):
    def __init__(
        self,
        what: str,
        source: Source[T],
        replace: Callable[[T], Awaitable[None]],
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """`what`: authentication or authorization."""
        self._what, self._source, self._replace, self._clock = what, source, replace, clock
        self._text = source.read()
        start = f"apiserver_{what}_config_controller_automatic_reload"
        self._reloads = metrics.counter(
            f"{start}s_total",
            f"Total number of automatic reloads of {what} configuration split by status.",
            ("status",),
        )
        self._last = metrics.gauge(
            f"{start}_last_timestamp_seconds",
            f"Timestamp of the last automatic reload of {what} configuration split by status.",
            ("status",),
        )

    async def keep_going(self) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            await self.once()

    async def once(self) -> None:
        try:
            text = self._source.read()
            if text == self._text:
                return
            self._text = text
            await self._replace(self._source.parse(text))
        except (OSError, ValueError) as error:
            log.error("invalid configuration file, keeping the previous one", what=self._what,
                      error=error)  # fmt: skip
            self._note("failure")
            return
        log.info("configuration file reloaded", what=self._what)
        self._note("success")

    def _note(self, status: str) -> None:
        self._reloads.add(status)
        self._last.set(self._clock.now(), status)
