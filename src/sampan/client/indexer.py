"""The informer's store: the objects of one kind by key, and indices over them.

Job: hold what the reflector saw last; answer by key and by index; count; say what each change
    replaced.
Invariant: an index or tally always agrees with the objects, also after a whole new set came in.
Invariant: an object that was deleted and made anew under the same name is seen as two changes, a
    deletion and a creation, even where the events between were missed.
Owner: the Informer writes; everybody else reads. What is returned is shared and read-only.
"""

import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from sampan.api.objects import Obj, key_of, meta_of, namespace_of, uid_of
from sampan.api.rules.aspects import (
    ANYTHING,
    CAME,
    EXISTENCE,
    NODE,
    OTHER,
    OWNERS,
    WENT,
    interest_of,
    looks_at,
    touched,
)
from sampan.api.rules.tally import Tally, TallyFunction
from sampan.core.log import get_logger
from sampan.core.tasks import isolated

log = get_logger(__name__)

IndexFunction = Callable[[Obj], Iterable[str]]
# What a change replaced and what is there now; None where there was, or is, nothing. And which
# aspects of the object it touches.
Difference = tuple[Obj | None, Obj | None, int]


@looks_at(CAME)
def by_namespace(obj: Obj) -> Iterable[str]:
    return (namespace_of(obj),)


@looks_at(OWNERS)
def by_controller_uid(obj: Obj) -> Iterable[str]:
    owners = meta_of(obj).get("ownerReferences") or ()
    return [owner.get("uid", "") for owner in owners if owner.get("controller")]


@looks_at(NODE)
def by_node_name(obj: Obj) -> Iterable[str]:
    node_name = (obj.get("spec") or {}).get("nodeName")
    return (node_name,) if node_name else ()


class _Index:
    """The keys of the objects under each of their values."""

    __slots__ = ("aspects", "function", "keys", "values")

    def __init__(self, function: IndexFunction) -> None:
        self.function, self.aspects = function, interest_of(function).aspects
        self.keys: dict[str, dict[str, None]] = {}  # by value, in the order in which they came
        # Under which values each key stands, so that nobody has to ask for those of the old object.
        self.values: dict[str, Sequence[str]] = {}

    def put(self, key: str, obj: Obj | None) -> None:
        before = self.values.get(key, ())
        after: Sequence[str] = () if obj is None else tuple(self.function(obj))
        if before is after or before == after:
            return
        for value in before:
            found = self.keys.get(value, {})
            found.pop(key, None)
            if not found:
                self.keys.pop(value, None)  # unless it is named twice
        if after:
            self.values[key] = after
        else:
            del self.values[key]
        for value in after:
            self.keys.setdefault(value, {})[key] = None


class Cache:
    def __init__(self, indices: Mapping[str, IndexFunction] | None = None) -> None:
        self._objects: dict[str, Obj] = {}
        self._indices: dict[str, _Index] = {}
        self._tallies: dict[str, Tally] = {}
        self._compares = False
        for name, function in (indices or {}).items():
            self.add_index(name, function)

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def kept_objects(self) -> object:
        """For who weighs them."""
        return self._objects

    def get(self, key: str) -> Obj | None:
        """By `namespace/name`, or `name` for what has no namespace."""
        return self._objects.get(key)

    def all(self) -> Collection[Obj]:
        """A live view: take a list of it before anything awaits."""
        return self._objects.values()

    def by(self, index: str, value: str) -> list[Obj]:
        objects = self._objects
        return [objects[key] for key in self._indices[index].keys.get(value, ())]

    def some(self, index: str, value: str, most: int | None) -> list[Obj]:
        """At most so many of them, the longest known first."""
        keys = self._indices[index].keys.get(value, ())
        return [self._objects[key] for key in islice(keys, most)]

    def count(self, index: str, value: str) -> int:
        return len(self._indices[index].keys.get(value, ()))

    def index_values(self, index: str) -> Collection[str]:
        """The values under which the index has anything: a live view, too."""
        return self._indices[index].keys.keys()

    def tally(self, name: str, group: Hashable) -> Mapping[Any, int]:
        """How many of the group look alike: a live view."""
        return self._tallies[name].of(group)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Asking again for an index that is there is fine, as long as it is the same one."""
        known = self._indices.get(name)
        assert known is None or known.function is function, f"two indices are named {name}"
        if known is not None:
            return
        index = self._indices[name] = _Index(function)
        for key, obj in self._objects.items():
            _put((index.put,), key, obj)

    def add_tally(self, name: str, function: TallyFunction) -> None:
        """As an index: the same one may be asked for again."""
        known = self._tallies.get(name)
        assert known is None or known.function is function, f"two tallies are named {name}"
        if known is not None:
            return
        tally = self._tallies[name] = Tally(function)
        for key, obj in self._objects.items():
            _put((tally.put,), key, obj)

    def compare(self) -> None:
        """From now on it is looked what a change touches. That is worth its while where many ask:
        else each change counts as one that touches everything."""
        self._compares = True

    def put(self, obj: Obj) -> list[Difference]:
        key = sys.intern(key_of(obj))  # the caches of one process have it once
        old = self._objects.get(key)
        if old is None:
            self._set(key, obj, ANYTHING)
            return [(None, obj, CAME | OTHER)]
        if old["metadata"].get("uid") != obj["metadata"].get("uid"):
            self._set(key, obj, ANYTHING)
            return [(old, None, WENT | OTHER), (None, obj, CAME | OTHER)]
        touches = touched(old, obj) if self._compares else ANYTHING & ~EXISTENCE
        self._set(key, obj, touches)
        return [(old, obj, touches)]

    def remove(self, obj: Obj) -> list[Difference]:
        """Remove by key; `obj`, its last state, is reported where it is the one that we had."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is None:
            return []
        self._set(key, None, ANYTHING)
        return [(obj if uid_of(obj) == uid_of(old) else old, None, WENT | OTHER)]

    def replace(self, items: Iterable[Obj]) -> list[Difference]:
        """Make `items` everything there is. Objects that did not change are not reported."""
        wanted = {key_of(obj): obj for obj in items}
        gone = [obj for key, obj in self._objects.items() if key not in wanted]
        differences = [difference for obj in gone for difference in self.remove(obj)]
        for key, obj in wanted.items():
            if not _same(self._objects.get(key), obj):
                differences += self.put(obj)
        return differences

    def _set(self, key: str, new: Obj | None, touches: int) -> None:
        if new is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = new
        if self._indices:
            _put([view.put for view in self._indices.values() if touches & view.aspects], key, new)
        if self._tallies:
            _put([view.put for view in self._tallies.values() if touches & view.aspects], key, new)


def _put(puts: Iterable[Callable[[str, Obj | None], object]], key: str, new: Obj | None) -> None:
    """An object that the function of one index fails at is not there for that one; it is for
    everybody else."""
    for put in isolated("index function failed", puts, key, new):
        log.warning("object without a usable key skipped", key=key)
        put(key, None)


def _same(old: Obj | None, new: Obj) -> bool:
    if old is None:
        return False
    before, after = meta_of(old), meta_of(new)
    return bool(
        before.get("resourceVersion") == after.get("resourceVersion")
        and before.get("uid") == after.get("uid")
    )
