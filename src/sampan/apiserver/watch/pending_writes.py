"""Pending writes: keys of which the store may have something newer than the watch cache.

Job: say of a key whether the store may have something newer than the cache.
Invariant: a key that is not stale is in the cache as it is in the store, as long as nobody else
    writes into the store (but for what ends by itself, which a compare-and-swap notices).
Owner: Registry.
"""

from sampan.store.contract import Store


class PendingWrites:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._writes: dict[str, int] = {}  # how many, by key
        self._unsure = 0  # the store's revision when a write last ended in any other way

    def may_be_stale(self, key: str, cached: int) -> bool:
        """`cached`: the revision that the cache has reached."""
        return key in self._writes or cached < self._unsure

    def of(self, key: str) -> "PendingWrite":
        """A block that ends when the cache has what was written, or nobody waits for that."""
        return PendingWrite(self, key)

    def begin(self, key: str) -> None:
        self._writes[key] = self._writes.get(key, 0) + 1

    def end(self, key: str, is_cached: bool) -> None:
        if self._writes[key] > 1:
            self._writes[key] -= 1
        else:
            del self._writes[key]
        if not is_cached:
            self._unsure = self._store.revision


class PendingWrite:
    __slots__ = ("_all", "_key")

    def __init__(self, all_writes: PendingWrites, key: str) -> None:
        self._all, self._key = all_writes, key

    def __enter__(self) -> None:
        self._all.begin(self._key)

    def __exit__(self, kind: object, *_how: object) -> None:
        self._all.end(self._key, kind is None)
