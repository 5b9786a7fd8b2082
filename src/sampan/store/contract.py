"""What a store is: bytes under keys, every change numbered.

Job: the interface that memory, SQLite and etcd implement, and that contract tests pin down.
Invariant: revisions grow by one per write across all keys; the first write of an empty store is 2,
    as in etcd, where 1 is the empty store. (In an etcd that others use too, their writes count.)
Invariant: a write that was answered is durable; one that failed or was not answered is there
    whole or not at all.
Invariant: a watch delivers every change after its revision exactly once, in order of revision.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One key at one moment."""

    key: str
    value: bytes
    create_revision: int  # when this incarnation of the key began
    revision: int  # when this value was written


@dataclass(frozen=True, slots=True)
class Change:
    """One write; a deletion has no `entry`. What was there before is not told: who needs it, the
    watch cache above all, has it, and to read it again would double the work of a write."""

    revision: int
    key: str
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Page:
    """What a range read found, in key order, at one revision."""

    entries: Sequence[Entry]
    revision: int  # the store's revision at which the read was made
    remaining: int  # how many more entries of the range lie behind the last one returned


class StoreError(Exception):
    """The store could not do it; nothing was changed by this call."""


class KeyExists(StoreError):
    """create() of a key that is there."""


class RevisionMismatch(StoreError):
    """update() or delete() of a key that is not at the expected revision; `current` is what is."""

    def __init__(self, key: str, expected: int, current: Entry | None) -> None:
        super().__init__(f"{key} is not at revision {expected}")
        self.key, self.expected, self.current = key, expected, current


class Compacted(StoreError):
    """The revision asked for is older than what is kept; `oldest` can still be read."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} has been compacted; the oldest is {oldest}")
        self.revision, self.oldest = revision, oldest


class FutureRevision(StoreError):
    """The revision asked for has not been written yet."""


class Unavailable(StoreError):
    """No server of the store answers; whether a write in flight was kept is not known."""


class StoreClosed(StoreError):
    """The store is closed or its disk failed; whether a write in flight was kept is not known."""


class Watch(Protocol):
    """Changes under one prefix. `async for changes in watch`: lists, never empty (unless progress
    was asked for), in order.
    Keys that expire together may be deleted at one revision; such changes come in one list.

    Ends with `Compacted` when the reader is too far behind to be served from what is kept, and
    with `StoreClosed` when the store closes.
    """

    @property
    def position(self) -> int:
        """Every change under the prefix up to this revision has been handed to the reader."""

    def __aiter__(self) -> AsyncIterator[list[Change]]: ...

    def close(self) -> None: ...


class Store(Protocol):
    @property
    def shared(self) -> bool:
        """Whether other processes write to it too, so that `revision` may be behind them."""

    @property
    def revision(self) -> int:
        """The newest committed revision that this process knows of."""

    async def current_revision(self) -> int:
        """At least the revision of every write that any process has had answered before this
        call. Where the store is not shared that is `revision`."""

    async def get(self, key: str) -> Entry | None: ...

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        """Entries whose key has `prefix`, from `start` on (inclusive), at most `limit` (0 = all),
        as they were at `revision` (0 = now). Raises Compacted or FutureRevision."""

    async def create(self, key: str, value: bytes, *, ttl_seconds: int = 0) -> int:
        """The new revision. Raises KeyExists. With a TTL the key is deleted by itself later."""

    async def update(
        self, key: str, value: bytes, expected_revision: int, *, ttl_seconds: int = 0
    ) -> int:
        """Replace the value if it is still the one of `expected_revision`. Raises
        RevisionMismatch (also where the key is gone)."""

    async def delete(self, key: str, expected_revision: int) -> int:
        """Delete the key if it is still at `expected_revision`; returns the deletion's own
        revision. Raises RevisionMismatch."""

    def watch(self, prefix: str, after_revision: int, *, progress: bool = False) -> Watch:
        """Every change under `prefix` with a revision greater than `after_revision`. With
        `progress`, an empty list where revisions went on without a change under the prefix."""

    async def compact(self, revision: int) -> None:
        """Forget what is older than `revision`: range reads and watches before it raise Compacted;
        the newest value of every living key stays."""

    async def close(self) -> None: ...
