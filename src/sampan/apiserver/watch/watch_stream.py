"""One open watch: where it starts, its bookmarks, its end.

Job: join initial state, replayed and live events into one stream for one reader.
Invariant: nothing between the initial state and the first live event is lost or seen twice.
"""

from collections.abc import Awaitable, Callable

import orjson

from sampan.api.calls import Call, Event, Item
from sampan.api.objects import Obj
from sampan.apiserver.watch.cache_watcher import Watcher
from sampan.apiserver.watch.watch_cache import KindCache, WatchCache
from sampan.core.fast_dataclass import dataclass
from sampan.core.virtual_time.machine_time import Timer, call_later

# Events as the version that is watched has them.
Shown = Callable[[list[Event]], Awaitable[list[Event]]]
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class WatchTimes:
    lifetime_seconds: float  # after which the server ends it
    bookmark_seconds: float  # between bookmarks


class WatchStream:
    """`next` gives events as they come; an empty list is the end."""

    def __init__(
        self,
        cache: WatchCache,
        kind: KindCache,
        call: Call,
        watcher: Watcher,
        times: WatchTimes,
        shown: Shown | None = None,
    ) -> None:
        self._shown = shown
        self._cache, self._kind = cache, kind
        self._call = call
        self._watcher = watcher
        self._bookmark_seconds = times.bookmark_seconds
        self._bookmark_due = False
        self._over = False
        # Clients live by the machine's time: each virtual hour they would have to begin again.
        self._end_timer = call_later(times.lifetime_seconds, self._end)
        self._bookmark_timer: Timer | None = None
        if call.options.allow_bookmarks:
            self._bookmark_timer = call_later(times.bookmark_seconds, self._bookmark)

    async def next(self) -> list[Event]:
        """Raises ApiError where that is all that there is to tell."""
        if self._watcher.failure is not None:
            raise self._watcher.failure
        while True:
            events = self._watcher.take()
            if events:
                return events if self._shown is None else await self._shown(events)
            if self._over or self._watcher.closed:
                # Also of one that did not keep up: it has all up to here, and watches on from it.
                return []
            if self._bookmark_due:
                self._bookmark_due = False
                return [bookmark(self._call, self._cache.revision, initial_end=False)]
            await self._watcher.wait()

    def close(self) -> None:
        self._over = True
        self._end_timer.cancel()
        if self._bookmark_timer is not None:
            self._bookmark_timer.cancel()
        self._kind.forget(self._watcher)
        self._watcher.end()

    def _end(self) -> None:
        self._over = True
        self._watcher.wake()

    def _bookmark(self) -> None:
        self._bookmark_due = True
        self._watcher.wake()
        self._bookmark_timer = call_later(self._bookmark_seconds, self._bookmark)


def bookmark(call: Call, revision: int, *, initial_end: bool) -> Event:
    """An object with nothing but a resourceVersion (and the mark that ends the initial state)."""
    metadata: Obj = {"resourceVersion": str(revision), "creationTimestamp": None}
    if initial_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    resource = call.resource
    obj: Obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return Event("BOOKMARK", Item("", revision, obj, orjson.dumps(obj)))
