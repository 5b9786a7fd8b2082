"""What was worked out for a value that many objects share: looked up by which value it is.

Job: remember one result for each of the newest values that were asked about. Pure.
Invariant: only of what a cache handed out, which nobody changes any more.
Invariant: what is remembered is bounded, and keeps its value, so that no other has its identity.
Owner: whoever made it.
"""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ByIdentity(Generic[K, V]):
    """Pods of one template have one list of containers between them. To compare it with that of
    another pod would cost as much as most answers about it."""

    __slots__ = ("_known", "_most")

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._known: dict[int, tuple[K, V]] = {}

    def get(self, about: K) -> V | None:
        found = self._known.get(id(about))
        return None if found is None else found[1]

    def keep(self, about: K, value: V) -> V:
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[id(about)] = (about, value)
        return value
