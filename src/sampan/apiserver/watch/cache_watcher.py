"""One watcher of the watch cache: the changes that it is offered, and its bounded queue of events.

Job: a change as all watchers of its kind share it; what of it one of them gets to see.
Invariant: a watcher that does not keep up is cut, after a gapless start; it never makes another one
    wait.
Owner: watch_cache.KindCache offers; one reader takes.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from sampan.api.calls import Event, Item
from sampan.api.errors import ApiError
from sampan.apiserver.storage.stored_form import at_revision
from sampan.core.wakeup import Wakeup

WOKEN_AT_ONCE = 128  # watchers; each takes some 30 µs to encrypt and send an event


STATE_PAGE = 1000  # of the initial state, that a watcher's reader takes in one go


Matches = Callable[[Item], bool]


Trigger = tuple[str, str]  # (field, value): only changes of objects that have it wake the watcher


class Record:
    """One change of one object, as all watchers of its kind share it."""

    __slots__ = ("_added", "_deleted", "_modified", "at_seconds", "before", "now", "revision")

    def __init__(
        self, revision: int, now: Item | None, before: Item | None, at_seconds: float
    ) -> None:
        self.revision = revision
        self.now = now  # None: deleted
        self.before = before
        self.at_seconds = at_seconds
        # Made for the first who sees it as such; a dict would be the largest part of a record.
        self._added: Event | None = None
        self._modified: Event | None = None
        self._deleted: Event | None = None

    def event(self, matches: Matches | None) -> Event | None:
        """What a watcher sees of it: entering a selection is ADDED, leaving it is DELETED."""
        now, before = self.now, self.before
        inside = now is not None and (matches is None or matches(now))
        was_inside = before is not None and (matches is None or matches(before))
        if inside:
            assert now is not None
            if was_inside:
                if self._modified is None:
                    self._modified = Event("MODIFIED", now)
                return self._modified
            if self._added is None:
                self._added = Event("ADDED", now)
            return self._added
        if was_inside:
            assert before is not None
            if self._deleted is None:
                self._deleted = Event("DELETED", at_revision(before, self.revision))
            return self._deleted
        return None

    def forget_lines(self) -> None:
        for event in (self._added, self._modified, self._deleted):
            if event is not None:
                event.forget_line()


class Watcher:
    """A bounded queue of events between the feed and one reader."""

    def __init__(self, namespace: str, matches: Matches | None, after: int, bound: int) -> None:
        self.namespace = namespace
        self.trigger: Trigger | None = None
        self.closed = False
        self.cut = False  # closed because it was too slow
        self.failure: ApiError | None = None  # all that its reader is told, as an event
        self.matches = matches
        self._after = after
        self._bound = bound
        self._state: list[Item] = []  # what there was in the beginning, the first item last
        self._events: list[Event] = []
        self._initial = 0  # of these, that were put before anything live
        self._wakeup = Wakeup()
        self.wake = self._wakeup.wake

    def offer(self, record: Record) -> bool:
        """Whether its reader has to be woken."""
        if record.revision <= self._after or self.closed:
            return False
        event = record.event(self.matches)
        if event is None:
            return False
        if len(self._events) - self._initial >= self._bound:
            self.cut = True
            self.end()
            return False
        self._events.append(event)
        return True

    def put(self, events: Iterable[Event]) -> None:
        """What was before anything live (initial state, replay); it does not count against the
        bound: its reader could not take it earlier."""
        self._events.extend(events)
        self._initial = len(self._events)
        self.wake()

    def begin_with(self, items: Iterable[Item]) -> None:
        """The initial state, before everything that is put or offered. Its events, with the bytes
        that are sent, are made as they are taken: all at once would be as much as the kind again.
        """
        self._state = list(items)[::-1]
        self.wake()

    def take(self) -> list[Event]:
        """A part of the initial state, or all that has come since."""
        if self._state:
            some = range(min(STATE_PAGE, len(self._state)))
            return [Event("ADDED", self._state.pop()) for _ in some]
        events, self._events, self._initial = self._events, [], 0
        return events

    async def wait(self) -> None:
        """Until there is something to look at: an event, a wake-up, the end."""
        if self._events or self._state or self.closed:
            return
        await self._wakeup.wait()

    def end(self) -> None:
        self.closed = True
        self.wake()


def wake_in_parts(watchers: Sequence[Watcher], start: int = 0) -> None:
    """Thousands of watchers that all write at once would hold up everybody else: others have a turn
    between each part and the next. Their events wait for them in order."""
    end = start + WOKEN_AT_ONCE
    for watcher in watchers[start:end]:
        watcher.wake()
    if end < len(watchers):
        asyncio.get_running_loop().call_soon(wake_in_parts, watchers, end)
