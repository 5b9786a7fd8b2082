"""Bounded memos: what is remembered makes room for what is new.

Job: remember at most so many results. Each use names its bound; nothing else in the tree counts
    and empties a dict of its own (tests/test_architecture.py).
Invariant: there are never more than `most` entries.
Invariant: to look something up is one lookup in a dict, without a step of Python.
Owner: whoever made it.

They differ in what is lost when one is full: `Bounded`, what is oldest; `Recent`, exactly the one
entry that was written longest ago; `FlushedMemo` and `Computed`, everything, where microseconds
count.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
Evicted = Callable[[K, V], object]
_EVICTED_PART = 8  # of all, at once


class Bounded(dict[K, V]):
    """A memo of what can be worked out again. When it is full, the eighth of it that was added
    first goes at once: to find the first of a dict takes time in proportion to how many have gone
    before it, so that going one by one would cost a full memo of 4,096 ten times as much."""

    __slots__ = ("_evicted", "most")

    def __init__(self, most: int, evicted: Evicted[K, V] | None = None) -> None:
        assert most > 0, most
        self.most = most
        self._evicted = evicted

    def __setitem__(self, key: K, value: V) -> None:
        dict.__setitem__(self, key, value)
        if len(self) > self.most:
            self._make_room()

    def setdefault(self, key: K, default: V) -> V:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, other: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:  # type: ignore[override]  # no keywords
        for key, value in other.items() if isinstance(other, Mapping) else other:
            self[key] = value

    def __ior__(self, other: Any) -> "Bounded[K, V]":  # type: ignore[override,misc]  # as update
        self.update(other)
        return self

    def _make_room(self) -> None:
        for key in list(islice(self, -(-self.most // _EVICTED_PART))):
            value = self.pop(key)
            if self._evicted is not None:
                self._evicted(key, value)


class Recent(OrderedDict[K, V]):
    """A record of what cannot be worked out again (a session, a token bucket): when it is full,
    only the one goes that was written longest ago. To write an entry anew makes it the newest."""

    def __init__(self, most: int, evicted: Evicted[K, V] | None = None) -> None:
        assert most > 0, most
        super().__init__()
        self.most = most
        self._evicted = evicted

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self.most:
            gone = self.popitem(last=False)
            if self._evicted is not None:
                self._evicted(*gone)


class FlushedMemo(Generic[K, V]):
    """A memo of small things on the hottest ways. `known` is for reading, a plain dict: one of a
    subclass takes Python a tenth longer to look into. When it is full all of it goes, which takes
    half as long as to let the oldest go one after the other."""

    __slots__ = ("known", "most")

    def __init__(self, most: int) -> None:
        assert most > 0, most
        self.most = most
        self.known: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self.known)

    def clear(self) -> None:
        self.known.clear()

    def keep(self, key: K, value: V) -> V:
        known = self.known
        if len(known) >= self.most:
            known.clear()
        known[key] = value
        return value


class Computed(dict[K, V]):
    """As FlushedMemo, of results that it works out by itself: `memo[key]` never fails."""

    __slots__ = ("make", "misses", "most")

    def __init__(self, most: int, make: Callable[[K], V]) -> None:
        assert most > 0, most
        self.most, self.make = most, make
        self.misses = 0

    def __missing__(self, key: K) -> V:
        self.misses += 1
        if len(self) >= self.most:
            self.clear()
        value = self[key] = self.make(key)
        return value
