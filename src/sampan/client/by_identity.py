"""Results by identity: a memo of functions whose argument many objects share.

Job: a decorator, as functools.lru_cache, that looks its first argument up by which object it is.
Invariant: only for what a cache handed out, which nobody changes any more.
Invariant: what is remembered is bounded, and keeps its value, so that no other has its identity.
Invariant: no large value is kept, unless a function is there for large ones: a thousand pods that
    come and go would leave a thousand large lists.
"""

from collections.abc import Callable
from typing import TypeVar

from sampan.api.objects import is_larger
from sampan.core.bounded import FlushedMemo

K = TypeVar("K")
U = TypeVar("U")
V = TypeVar("V")


LARGE = 500  # values within one
# For what thousands of parts of one large value ask: nobody need walk over it.
OF_ANY_SIZE = 1 << 62


def by_identity(most: int, largest: int = LARGE) -> Callable[[Callable[[K], V]], Callable[[K], V]]:
    """Pods of one template have one list of containers between them. To compare it with that of
    another pod would cost as much as most answers about it."""

    def decorate(function: Callable[[K], V]) -> Callable[[K], V]:
        memo: FlushedMemo[int, tuple[K, V]] = FlushedMemo(most)
        find = memo.known.get

        def remembered(about: K) -> V:
            found = find(id(about))
            if found is None:
                answer = function(about)
                if largest < OF_ANY_SIZE and is_larger(about, largest):
                    return answer
                found = memo.keep(id(about), (about, answer))
            return found[1]

        return remembered

    return decorate


def by_identity_and(
    most: int, largest: int = LARGE
) -> Callable[[Callable[[K, U], V]], Callable[[K, U], V]]:
    """Likewise, with a second argument that is compared."""

    def decorate(function: Callable[[K, U], V]) -> Callable[[K, U], V]:
        memo: FlushedMemo[tuple[int, U], tuple[K, V]] = FlushedMemo(most)
        find = memo.known.get

        def remembered(about: K, further: U) -> V:
            found = find((id(about), further))
            if found is None:
                answer = function(about, further)
                if largest < OF_ANY_SIZE and is_larger(about, largest):
                    return answer
                found = memo.keep((id(about), further), (about, answer))
            return found[1]

        return remembered

    return decorate
