"""The watch cache: every object parsed and serialised once, every change sent to watchers.

Job: follow the store with one watch, keep the newest items of each kind and a window of recent
    changes, hand changes to watchers.
Invariant: items, windows and watchers of a kind move together, in order of revision, in one step
    without an await: a reader never sees half a change.
Invariant: a watcher that does not keep up is cut, after a gapless start; it never makes another one
    wait.
Invariant: a key or a value that is none of an object is left out and named; of an object that was
    known before, that state stays, and nobody is told that it is gone.
Owner: the feed task; everything else only reads, or waits until a revision has been reached.
"""

import asyncio
import heapq
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sized
from itertools import count

from sampan.api.calls import Item
from sampan.api.errors import Expired, ServiceUnavailable, Timeout
from sampan.api.objects import Obj
from sampan.apiserver.storage.initial_load import InitialLoad
from sampan.apiserver.storage.packing import Patterns
from sampan.apiserver.storage.sharing import SharedValues
from sampan.apiserver.storage.stored_form import NotAnObject, item_from, share_parts
from sampan.apiserver.storage.stored_keys import ROOT, kind_at, split_key
from sampan.apiserver.watch.cache_watcher import Matches, Record, Trigger, Watcher, wake_in_parts
from sampan.core.clock import Clock
from sampan.core.holding import Hold, Outcome
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.store.contract import Change, Compacted, Store, StoreClosed, StoreError

log = get_logger(__name__)

WINDOW_LEAST = 128  # records kept however old they are …
WINDOW_LEAST_BYTES = 1024 * 1024  # … unless they are large
WINDOW_MOST = 8192
WINDOWS_BYTES = 48 * 1024 * 1024  # of states of the past, of all kinds together
LOAD_PAGE = 2000
LINES_KEPT = 256  # of the newest records: by then everybody who keeps up has sent them
LINES_BYTES = 4 * 1024 * 1024  # of one kind's
WINDOW_SECONDS = 75.0  # as upstream's cacher: what is younger is kept, up to the bound
LOOK_SECONDS = 1.0  # between looks at kinds that nobody writes to, while others are written
FORGOTTEN_AT_ONCE = 512  # records; the states of before that each keeps take some 10 µs to go

LoadProgress = Callable[[int, int], None]  # objects read, of how many
Waiter = tuple[int, int, "asyncio.Future[None]"]  # (revision, ticket, told when it is reached)


class KindCache:
    """All objects of one kind, keyed by `namespace/name` or `name`."""

    def __init__(self, start_revision: int) -> None:
        self.items: dict[str, Item] = {}
        self.unreadable: dict[str, str] = {}  # key → why nobody can read what is stored there
        self.changed_revision = start_revision  # of the newest change of this kind
        self._keys: list[str] = []  # sorted, as the store's range reads are
        self._window: deque[Record] = deque()
        self.past_bytes = 0  # of the states of the past that it keeps
        self._line_bytes = 0  # of the newest
        self._newest: deque[Record] = deque()  # those whose events keep their lines
        self._window_start = start_revision  # every later record is in the window
        # In the order in which they came, which is the order in which they hear.
        self._watchers: dict[Trigger | None, dict[Watcher, None]] = {}
        self._trigger_fields: dict[str, Callable[[Obj], str]] = {}

    def __len__(self) -> int:
        return len(self.items)

    def kept(self) -> tuple[object, ...]:
        """The objects, for who weighs them."""
        return self.items, self._keys

    def history(self) -> tuple[object, ...]:
        """What the changes that are remembered keep besides, likewise: states of the past."""
        return ([record.before for record in self._window],)

    def window(self) -> Sized:
        """All that is remembered, states that are still true among them."""
        return self._window

    def keys(self, namespace: str = "") -> list[str]:
        """Sorted; a copy."""
        if not namespace:
            return list(self._keys)
        first = bisect_left(self._keys, namespace + "/")
        last = bisect_left(self._keys, namespace + "0")  # "0" is the character after "/"
        return self._keys[first:last]

    def page(self, namespace: str, start: str, most: int) -> list[Item]:
        """At most so many, from the key `start` on."""
        keys, items = self._keys, self.items
        first = bisect_left(keys, max(start, f"{namespace}/" if namespace else ""))
        last = bisect_left(keys, f"{namespace}0") if namespace else len(keys)
        return [items[key] for key in keys[first : min(first + most, last)]]

    def count_from(self, namespace: str, start: str) -> int:
        """How many there are from the key `start` on."""
        keys = self._keys
        first = bisect_left(keys, max(start, f"{namespace}/" if namespace else ""))
        return (bisect_left(keys, f"{namespace}0") if namespace else len(keys)) - first

    def select(self, namespace: str, matches: Matches | None) -> list[Item]:
        items = self.items
        found = [items[key] for key in self.keys(namespace)]
        return found if matches is None else [item for item in found if matches(item)]

    def load(self, items: Iterable[Item], revision: int) -> None:
        """Start over from a full read; whoever watches must list again."""
        self.end_watchers()
        self.items = {item.key: item for item in items}
        self.unreadable = {}
        self._keys = sorted(self.items)
        self._window.clear()
        self.past_bytes = 0
        self._newest.clear()
        self._line_bytes = 0
        self._window_start = self.changed_revision = revision

    def change(self, key: str, revision: int, item: Item | None, at_seconds: float) -> None:
        before = self.items.get(key)
        if item is not None:
            if before is None:
                insort(self._keys, key)
            self.items[key] = item
        elif before is not None:
            del self.items[key]
            del self._keys[bisect_left(self._keys, key)]
        if self.unreadable:
            self.unreadable.pop(key, None)
        self.changed_revision = revision
        record = Record(revision, item, before, at_seconds)
        self._keep(record)
        wake_in_parts([each for each in self._watchers_of(key, record) if each.offer(record)])

    def watch(self, watcher: Watcher, trigger: Trigger | None, get: Callable[[Obj], str]) -> Hold:
        """Tell `watcher` of what comes. With a trigger only of objects that have or had it. For as
        long as the block that holds it; for longer where that commits."""
        if trigger is not None:
            self._trigger_fields[trigger[0]] = get
        watcher.trigger = trigger
        self._watchers.setdefault(trigger, {})[watcher] = None
        hold = Hold()
        hold.add(lambda outcome: self.forget(watcher) if outcome is Outcome.RELEASED else None)
        return hold

    def replay(self, watcher: Watcher, after: int) -> None:
        """Offer what happened after a revision; Expired where that is not known any more."""
        if after < self._window_start:
            raise Expired(f"too old resource version: {after} ({self._window_start})")
        watcher.put(
            event
            for record in self._window
            if record.revision > after
            and _in_namespace(record, watcher.namespace)
            and (event := record.event(watcher.matches)) is not None
        )

    def forget(self, watcher: Watcher) -> None:
        watchers = self._watchers.get(watcher.trigger)
        if watchers is not None:
            watchers.pop(watcher, None)
            if not watchers:
                del self._watchers[watcher.trigger]

    def end_watchers(self) -> None:
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.end()

    def watcher_count(self) -> int:
        return sum(len(watchers) for watchers in self._watchers.values())

    def _keep(self, record: Record) -> None:
        newest = self._newest
        newest.append(record)
        self._line_bytes += _size(record.now)
        while len(newest) > LINES_KEPT or (self._line_bytes > LINES_BYTES and len(newest) > 1):
            self._line_bytes -= _size(newest[0].now)
            newest.popleft().forget_lines()
        window = self._window
        window.append(record)
        self.past_bytes += _size(record.before)
        if len(window) > WINDOW_MOST:
            self.forget_oldest()
        if window[0].at_seconds < record.at_seconds - WINDOW_SECONDS:
            self.forget_old(record.at_seconds)

    def forget_old(self, now: float) -> None:
        """Some of what is too old by now: of a kind that nobody writes to any more, too."""
        window, oldest = self._window, now - WINDOW_SECONDS
        for _ in range(FORGOTTEN_AT_ONCE):
            few = len(window) <= WINDOW_LEAST and self.past_bytes <= WINDOW_LEAST_BYTES
            if few or not window or window[0].at_seconds >= oldest:
                return
            self.forget_oldest()

    def forget_oldest(self) -> None:
        record = self._window.popleft()
        self._window_start = record.revision
        self.past_bytes -= _size(record.before)

    def _watchers_of(self, key: str, record: Record) -> Iterable[Watcher]:
        if not self._watchers:
            return ()
        namespace = key.partition("/")[0] if "/" in key else ""
        found = list(self._watchers.get(None, ()))
        for field, get in self._trigger_fields.items():
            values = {get(item.obj) for item in (record.now, record.before) if item is not None}
            for value in values:
                found.extend(self._watchers.get((field, value), ()))
        return [match_ for match_ in found if not match_.namespace or match_.namespace == namespace]


class HandedOver:
    """What a writer has lent to the cache, until it is done."""

    __slots__ = ("_handed", "_key")

    def __init__(self, handed: dict[tuple[str, bytes], Obj], key: tuple[str, bytes]) -> None:
        self._handed, self._key = handed, key

    def __enter__(self) -> None:
        """It is there already."""

    def __exit__(self, *_how: object) -> None:
        self._handed.pop(self._key, None)


class WatchCache:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.revision = 0
        self._store = store
        self._clock = clock
        self._kinds: dict[str, KindCache] = {}
        self._past_bytes = 0  # of their windows, at most
        self._handed: dict[tuple[str, bytes], Obj] = {}
        self._sharing, self._patterns = SharedValues(), Patterns()
        self._waiting: list[Waiter] = []
        self._ticket = count()
        self._tasks = Tasks("watch-cache")
        self.stopped = False

    async def start(self, progress: LoadProgress | None = None) -> None:
        """`progress` hears how many objects of how many were read."""
        await self._load(progress)
        self._tasks.supervise("feed", self._follow)

    async def stop(self) -> None:
        self.stopped = True
        self.end_watchers()
        await self._tasks.stop()
        self._fail_waiting()

    def end_watchers(self) -> None:
        for kind in self._kinds.values():
            kind.end_watchers()

    def kind(self, prefix: str) -> KindCache:
        """The cache of `/registry/pods/`; one that nobody has written to yet is empty."""
        cache = self._kinds.get(prefix)
        if cache is None:
            cache = self._kinds[prefix] = KindCache(self.revision)
        return cache

    def let_go(self, prefix: str) -> bool:
        """Of a kind that nobody defines any more. False: it is still watched, or has objects."""
        kind = self._kinds.get(prefix)
        if kind is not None and (kind.items or kind.unreadable or kind.watcher_count()):
            return False
        self._kinds.pop(prefix, None)
        return True

    def kinds(self) -> Mapping[str, KindCache]:
        """By their place in the store."""
        return self._kinds

    def sizes(self) -> dict[str, int]:
        return {prefix: len(cache) for prefix, cache in self._kinds.items()}

    def hand_over(self, key: str, value: bytes, obj: Obj) -> "HandedOver":
        """The writer's own parsed form of what it writes in this block, so that it is not parsed
        again when the store reports it."""
        self._handed[key, value] = obj
        return HandedOver(self._handed, (key, value))

    async def reached(self, revision: int) -> None:
        """Wait until every change up to `revision` is in the cache."""
        if self.revision >= revision:
            return
        if self.stopped:
            raise ServiceUnavailable("the server is shutting down")
        waiter = (revision, next(self._ticket), asyncio.get_running_loop().create_future())
        heapq.heappush(self._waiting, waiter)
        try:
            await waiter[2]
        except asyncio.CancelledError:
            self._forget_waiter(waiter)
            raise

    async def fresh(self) -> None:
        """Wait until a read from the cache is as new as one from the store would be."""
        if self._store.shared:
            await self._caught_up_with_others()
        elif self.revision < self._store.revision:
            await self.reached(self._store.revision)

    async def _caught_up_with_others(self) -> None:
        try:
            await self.reached(await self._store.current_revision())
        except StoreClosed as error:
            raise ServiceUnavailable("the server's store is closed") from error
        except StoreError as error:
            raise Timeout(f"the server's store does not answer: {error}") from error

    async def _load(self, progress: LoadProgress | None = None) -> None:
        while True:
            try:
                await self._read_everything(progress)
                return
            except Compacted as error:
                log.info("store was compacted while it was read, reading again", error=error)

    async def _read_everything(self, progress: LoadProgress | None) -> None:
        """By pages: as bytes and parsed, all there is would take twice the memory."""
        found: dict[str, list[Item]] = {prefix: [] for prefix in self._kinds}
        revision, start, read = 0, "", 0
        reading = InitialLoad(self._sharing, self._patterns)
        unreadable: list[tuple[str, str]] = []
        while True:
            page = await self._store.range(ROOT, start=start, limit=LOAD_PAGE, revision=revision)
            for entry in page.entries:
                prefix, key = split_key(entry.key)
                others = found.setdefault(prefix, [])
                neighbour = others[-1] if others else None
                try:
                    value, kind = entry.value, kind_at(prefix)
                    others.append(reading.item(key, value, entry.revision, neighbour, kind))
                except NotAnObject as error:
                    unreadable.append((entry.key, str(error)))
            revision, read = page.revision, read + len(page.entries)
            if progress is not None:
                progress(read, read + page.remaining)
            if not page.remaining:
                break
            start = page.entries[-1].key + "\0"
        reading.end()
        for prefix, items in found.items():
            self.kind(prefix).load(items, revision)
        for stored_key, why in unreadable:
            self._leave_out(stored_key, why)
        self._advance(revision)

    async def _follow(self) -> None:
        try:
            while True:
                try:
                    await self._take_changes()
                except Compacted as error:
                    log.warning(
                        "watch cache is behind the compacted revision, relisting", error=error
                    )
                    await self._load()
        except StoreClosed:
            self.stopped = True
            self.end_watchers()
            self._fail_waiting()

    async def _take_changes(self) -> None:
        watch, looked_at = self._store.watch(ROOT, self.revision, progress=True), 0.0
        try:
            async for changes in watch:
                now = self._clock.monotonic()
                for change in changes:
                    self._apply(change, now)
                self._advance(watch.position)
                if now >= looked_at + LOOK_SECONDS:
                    looked_at = now
                    for kind in self._kinds.values():
                        kind.forget_old(now)
        finally:
            watch.close()

    def _apply(self, change: Change, now: float) -> None:
        prefix, key = split_key(change.key)
        kind, entry = self.kind(prefix), change.entry
        item = None
        if entry is not None:
            obj = self._handed.pop((entry.key, entry.value), None)
            try:
                value, own = entry.value, kind_at(prefix)
                item = item_from(key, value, entry.revision, obj, self._patterns, own)
            except NotAnObject as error:
                self._leave_out(change.key, str(error))
                return
            share_parts(item, kind.items.get(key), self._sharing)
        before = kind.past_bytes
        kind.change(key, change.revision, item, now)
        self._past_bytes += kind.past_bytes - before
        if self._past_bytes > WINDOWS_BYTES:
            self._forget_largest()

    def _leave_out(self, stored_key: str, why: str) -> None:
        prefix, key = split_key(stored_key)
        self.kind(prefix).unreadable[key] = why
        log.error("stored value is no object, left out", key=stored_key, why=why)

    def _forget_largest(self) -> None:
        """Whoever writes large objects again and again makes the window of their kind short, and
        that of no other."""
        kinds = self._kinds.values()
        self._past_bytes = sum(kind.past_bytes for kind in kinds)
        largest = max(kinds, key=lambda kind: kind.past_bytes)
        while self._past_bytes > WINDOWS_BYTES and len(largest.window()) > 1:
            self._past_bytes -= largest.past_bytes
            largest.forget_oldest()
            self._past_bytes += largest.past_bytes

    def _advance(self, revision: int) -> None:
        self.revision = revision
        while self._waiting and self._waiting[0][0] <= revision:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)

    def _forget_waiter(self, waiter: Waiter) -> None:
        """It waits no more; what it waited for may be far away, or never come."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)
            heapq.heapify(self._waiting)

    def _fail_waiting(self) -> None:
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(ServiceUnavailable("the server is shutting down"))
        self._waiting.clear()


def _size(item: Item | None) -> int:
    return 0 if item is None else item.size


def _in_namespace(record: Record, namespace: str) -> bool:
    if not namespace:
        return True
    item = record.now or record.before
    return item is not None and item.key.startswith(namespace + "/")
