"""Synchronous watch-cache listener: called in the step that changes a kind.

Job: hand every change of a kind to a function; no queue, no task, no waiting.
Invariant: what is told is told before anybody can read the changed kind.
"""

from collections.abc import Callable

from sampan.api.calls import Item
from sampan.apiserver.watch.cache_watcher import Record, Watcher
from sampan.apiserver.watch.watch_cache import KindCache

# (before, now): None where it was not there, or is not there any more.
Changed = Callable[[Item | None, Item | None], None]


class Listener(Watcher):
    def __init__(self, changed: Changed, reloaded: Callable[[], None]) -> None:
        super().__init__("", None, 0, 0)
        self._changed, self._reloaded = changed, reloaded

    def offer(self, record: Record) -> bool:
        self._changed(record.before, record.now)
        return False

    def end(self) -> None:
        """The kind is read anew: nothing that was known of it holds."""
        self._reloaded()


def follow(kind: KindCache, changed: Changed, reloaded: Callable[[], None]) -> None:
    """For as long as the kind is cached."""
    kind.watch(Listener(changed, reloaded), None, lambda _: "").commit()
