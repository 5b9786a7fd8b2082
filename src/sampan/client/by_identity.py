"""Results by identity: a memo of functions whose argument many objects share.

Job: a decorator, as functools.lru_cache, that looks its first argument up by which object it is.
Invariant: only for what a cache handed out, which nobody changes any more.
Invariant: what is remembered is bounded, and keeps its value, so that no other has its identity.
"""

from collections.abc import Callable
from typing import TypeVar

from sampan.core.bounded import FlushedMemo

K = TypeVar("K")
U = TypeVar("U")
V = TypeVar("V")


def by_identity(most: int) -> Callable[[Callable[[K], V]], Callable[[K], V]]:
    """Pods of one template have one list of containers between them. To compare it with that of
    another pod would cost as much as most answers about it."""

    def decorate(function: Callable[[K], V]) -> Callable[[K], V]:
        memo: FlushedMemo[int, tuple[K, V]] = FlushedMemo(most)
        find = memo.known.get

        def remembered(about: K) -> V:
            found = find(id(about))
            if found is None:
                found = memo.keep(id(about), (about, function(about)))
            return found[1]

        return remembered

    return decorate


def by_identity_and(most: int) -> Callable[[Callable[[K, U], V]], Callable[[K, U], V]]:
    """Likewise, with a second argument that is compared."""

    def decorate(function: Callable[[K, U], V]) -> Callable[[K, U], V]:
        memo: FlushedMemo[tuple[int, U], tuple[K, V]] = FlushedMemo(most)
        find = memo.known.get

        def remembered(about: K, further: U) -> V:
            found = find((id(about), further))
            if found is None:
                found = memo.keep((id(about), further), (about, function(about, further)))
            return found[1]

        return remembered

    return decorate
