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
ConvertEvents = Callable[[list[Event]], Awaitable[list[Event]]]
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class WatchTimes:
    lifetime_seconds: float  # after which the server ends it
    bookmark_seconds: float  # between bookmarks


@dataclass(frozen=True, slots=True)
class Showing:
    """How a watch shows its kind."""

    shown: ConvertEvents | None = None  # in another version; None: as it is stored
    # An object of which nothing is said, asked for with the first bookmark.
    empty: Callable[[], Obj] = dict


AS_STORED = Showing()


class WatchStream:
    """`next` gives events as they come; an empty list is the end."""

    def __init__(
        self,
        cache: WatchCache,
        kind: KindCache,
        call: Call,
        watcher: Watcher,
        times: WatchTimes,
        showing: Showing = AS_STORED,
    ) -> None:
        self.warnings: tuple[str, ...] = ()  # told with the head of the answer
        self._shown, self._empty = showing.shown, showing.empty
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
            if events and self._shown is not None:
                events = await self._shown(events)
                if not events:
                    continue  # none that it selects
            if events:
                return events
            if self._over or self._watcher.closed:
                # Also of one that did not keep up: it has all up to here, and watches on from it.
                return []
            if self._bookmark_due:
                self._bookmark_due = False
                return [
                    bookmark(self._call, self._cache.revision, self._empty(), initial_end=False)
                ]
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


def bookmark(call: Call, revision: int, empty: Obj, *, initial_end: bool) -> Event:
    """An object with nothing but a resourceVersion (and the mark that ends the initial state), as
    Go writes one: `empty`."""
    metadata: Obj = {"resourceVersion": str(revision)}
    if initial_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    resource = call.resource
    obj: Obj = {"kind": resource.kind, "apiVersion": resource.api_version}
    obj |= {**empty, "metadata": metadata}
    return Event("BOOKMARK", Item("", revision, obj, orjson.dumps(obj)))
