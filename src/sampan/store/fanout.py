"""Fan-out of committed changes to watchers, at the pace of each.

Job: hand each change to the watchers of its prefix; let the slow ones read the log instead.
Invariant: a watcher gets every change under its prefix after its revision once, in order.
Invariant: a watcher holds at most QUEUE_CHANGES changes and about QUEUE_BYTES bytes (and what else
    the last one's revision changed); one that falls further behind reads the log, and ends with
    Compacted where the log no longer reaches.
Owner: the store that publishes; everything runs in its event loop.
"""

from collections.abc import Awaitable, Callable, Sequence

from sampan.core.wakeup import Wakeup
from sampan.store.contract import Change, StoreClosed

QUEUE_CHANGES = 4096
QUEUE_BYTES = 16 * 1024 * 1024

# (prefix, after, upto) → changes in (after, upto], oldest first, perhaps not all of them, and the
# revision up to which they are complete. Raises Compacted.
ReadLog = Callable[[str, int, int], Awaitable[tuple[list[Change], int]]]


class Fanout:
    def __init__(self, revision: int, read_log: ReadLog) -> None:
        self.revision = revision  # published up to here
        self.read_log = read_log
        self._by_prefix: dict[str, list[Watcher]] = {}
        self._ended: str | None = None

    def watch(self, prefix: str, after_revision: int, progress: bool = False) -> "Watcher":
        watcher = Watcher(self, prefix, after_revision, progress)
        if self._ended is not None:
            watcher.end(self._ended)
        else:
            self._by_prefix.setdefault(prefix, []).append(watcher)
        return watcher

    def publish(self, changes: Sequence[Change]) -> None:
        """Changes that are committed, following on the ones published before."""
        assert changes[0].revision == self.revision + 1, (changes[0].revision, self.revision)
        self.advance(changes, changes[-1].revision)

    def advance(self, changes: Sequence[Change], revision: int) -> None:
        """Everything up to `revision` is known, and these were all changes that concern us."""
        assert revision >= self.revision, (revision, self.revision)
        self.revision = revision
        for prefix, watchers in self._by_prefix.items():
            theirs = [change for change in changes if change.key.startswith(prefix)]
            for watcher in watchers:
                watcher.offer(theirs)

    def skip(self, revision: int) -> None:
        """What lies between here and `revision` was not heard of: every watcher reads the log."""
        for watchers in self._by_prefix.values():
            for watcher in watchers:
                watcher.miss()
        self.revision = revision

    def forget(self, watcher: "Watcher") -> None:
        watchers = self._by_prefix.get(watcher.prefix, [])
        if watcher in watchers:
            watchers.remove(watcher)
            if not watchers:
                del self._by_prefix[watcher.prefix]

    def close(self, why: str) -> None:
        """End every watch, and every later one, with StoreClosed."""
        self._ended = why
        for watchers in self._by_prefix.values():
            for watcher in watchers:
                watcher.end(why)
        self._by_prefix.clear()

    def __len__(self) -> int:
        return sum(map(len, self._by_prefix.values()))


class Watcher:
    """One watch. Either `_behind` (it must read the log from `_position` on), or `_queue` holds
    every change of its prefix after `_position`. A full queue is handed out before the log."""

    def __init__(
        self, fanout: Fanout, prefix: str, after_revision: int, progress: bool = False
    ) -> None:
        self.prefix = prefix
        self._progress = progress
        self._told = after_revision  # the reader knows how far we are
        self._fanout = fanout
        self._position = after_revision  # everything up to here was delivered
        self._behind = after_revision < fanout.revision
        self._queue: list[Change] = []
        self._queued_bytes = 0
        self._ended: str | None = None
        self._closed = False
        self._wakeup = Wakeup()  # of its one reader

    @property
    def position(self) -> int:
        if self._queue or self._behind:
            return self._position
        return max(self._position, self._fanout.revision)

    def __aiter__(self) -> "Watcher":
        return self

    async def __anext__(self) -> list[Change]:
        while not self._closed:
            if self._queue:
                return self._drain()
            if self._ended is not None:
                raise StoreClosed(self._ended)
            if self._behind:
                if changes := await self._read_on():
                    return changes
            elif self._progress and self._told < self.position:
                self._told = self.position
                return []
            else:
                await self._wakeup.wait()
        raise StopAsyncIteration

    def close(self) -> None:
        self._closed = True
        self._queue.clear()
        self._fanout.forget(self)
        self._wakeup.wake()

    def offer(self, changes: Sequence[Change]) -> None:
        """The fan-out's side: newly committed changes under this prefix, perhaps none."""
        if self._behind or (not changes and not self._progress):
            return
        if changes and not self._queue:
            # Nothing before this concerned us: should we fall behind later, start from here.
            self._position = max(self._position, changes[0].revision - 1)
        for change in changes:
            if change.revision <= self._position:
                continue
            full = len(self._queue) >= QUEUE_CHANGES or self._queued_bytes >= QUEUE_BYTES
            # The log can only be read from one revision to the next: none is left half queued.
            if full and change.revision != self._queue[-1].revision:
                self._behind = True
                break
            self._queue.append(change)
            self._queued_bytes += 0 if change.entry is None else len(change.entry.value)
        self._wakeup.wake()

    def miss(self) -> None:
        if not self._queue and not self._behind:
            self._position = max(self._position, self._fanout.revision)
        self._behind = True
        self._wakeup.wake()

    def end(self, why: str) -> None:
        self._ended = why
        self._wakeup.wake()

    def _drain(self) -> list[Change]:
        changes, self._queue, self._queued_bytes = self._queue, [], 0
        self._position = changes[-1].revision
        self._told = self.position
        return changes

    async def _read_on(self) -> list[Change]:
        upto = self._fanout.revision
        changes, reached = await self._fanout.read_log(self.prefix, self._position, upto)
        self._position = reached
        # No await since: if nothing was published meanwhile, the queue takes over from here.
        self._behind = reached < self._fanout.revision
        return changes if not self._closed else []
