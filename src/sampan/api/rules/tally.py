"""Counts of objects by key, kept as they come, change and go.

Job: what a function shows of each object, counted by its group: an owner's pods by what the owner
    asks of them, a namespace's objects by what they take. Whoever needs the counts need not look
    at the objects.
Invariant: the counts are those of the objects that were put last, whatever was put before.
Owner: whoever keeps the objects, and tells of each change.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from sampan.api.objects import Obj
from sampan.api.rules.aspects import interest_of

# The group that an object is counted in and what is seen of it; None: it is not counted.
Seen = tuple[Hashable, Hashable]
TallyFunction = Callable[[Obj], Seen | None]
_NONE: Mapping[Any, int] = {}


class Tally:
    def __init__(self, function: TallyFunction) -> None:
        self.function, self.aspects = function, interest_of(function).aspects
        self._groups: dict[Hashable, Counter[Any]] = {}
        self._seen: dict[str, Seen] = {}
        self._shared: dict[Seen, Seen] = {}  # thousands of objects look alike

    def of(self, group: Hashable) -> Mapping[Any, int]:
        """What is seen in a group → how often. A live view: nothing may be awaited while it is
        looked at."""
        return self._groups.get(group, _NONE)

    def put(self, key: str, obj: Obj | None) -> bool:
        """What is there under the key now; None: nothing. Returns whether a count changed."""
        before = self._seen.get(key)
        after = None if obj is None else self.function(obj)
        if before == after:
            return False
        if before is not None:
            self._take_away(key, before)
        if after is not None:
            self._add(key, after)
        return True

    def _add(self, key: str, seen: Seen) -> None:
        seen = self._shared.setdefault(seen, seen)
        self._seen[key] = seen
        self._groups.setdefault(seen[0], Counter())[seen[1]] += 1

    def _take_away(self, key: str, seen: Seen) -> None:
        del self._seen[key]
        counts = self._groups[seen[0]]
        counts[seen[1]] -= 1
        if not counts[seen[1]]:
            del counts[seen[1]], self._shared[seen]
        if not counts:
            del self._groups[seen[0]]
