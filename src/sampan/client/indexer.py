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
from sampan.api.rules.tally import Tally, TallyFunction

IndexFunction = Callable[[Obj], Iterable[str]]
# What a change replaced and what is there now; None where there was, or is, nothing.
Difference = tuple[Obj | None, Obj | None]


def by_namespace(obj: Obj) -> Iterable[str]:
    return (namespace_of(obj),)


def by_controller_uid(obj: Obj) -> Iterable[str]:
    owners = meta_of(obj).get("ownerReferences") or ()
    return [owner.get("uid", "") for owner in owners if owner.get("controller")]


def by_node_name(obj: Obj) -> Iterable[str]:
    node_name = (obj.get("spec") or {}).get("nodeName")
    return (node_name,) if node_name else ()


class Cache:
    def __init__(self, indices: Mapping[str, IndexFunction] | None = None) -> None:
        self._objects: dict[str, Obj] = {}
        self._functions: dict[str, IndexFunction] = {}
        self._indices: dict[str, dict[str, dict[str, Obj]]] = {}
        # Under which values each object stands, so that nobody has to ask for those of the old one.
        self._values: dict[str, dict[str, Sequence[str]]] = {}
        self._tallies: dict[str, Tally] = {}
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
        return list(self._indices[index].get(value, {}).values())

    def some(self, index: str, value: str, most: int | None) -> list[Obj]:
        """At most so many of them, the longest known first."""
        return list(islice(self._indices[index].get(value, {}).values(), most))

    def count(self, index: str, value: str) -> int:
        return len(self._indices[index].get(value, ()))

    def index_values(self, index: str) -> Collection[str]:
        """The values under which the index has anything: a live view, too."""
        return self._indices[index].keys()

    def tally(self, name: str, group: Hashable) -> Mapping[Any, int]:
        """How many of the group look alike: a live view."""
        return self._tallies[name].of(group)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Asking again for an index that is there is fine, as long as it is the same one."""
        known = self._functions.get(name)
        assert known is None or known is function, f"two indices are named {name}"
        if known is not None:
            return
        self._functions[name] = function
        self._indices[name], self._values[name] = {}, {}
        for key, obj in self._objects.items():
            self._index(name, function, key, obj)

    def add_tally(self, name: str, function: TallyFunction) -> None:
        """As an index: the same one may be asked for again."""
        known = self._tallies.get(name)
        assert known is None or known.function is function, f"two tallies are named {name}"
        if known is not None:
            return
        tally = self._tallies[name] = Tally(function)
        for key, obj in self._objects.items():
            tally.put(key, obj)

    def put(self, obj: Obj) -> list[Difference]:
        key = sys.intern(key_of(obj))  # the caches of one process have it once
        old = self._objects.get(key)
        self._set(key, obj)
        if old is not None and uid_of(old) != uid_of(obj):
            return [(old, None), (None, obj)]
        return [(old, obj)]

    def remove(self, obj: Obj) -> list[Difference]:
        """Remove by key; `obj`, its last state, is reported where it is the one that we had."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is None:
            return []
        self._set(key, None)
        return [(obj if uid_of(obj) == uid_of(old) else old, None)]

    def replace(self, items: Iterable[Obj]) -> list[Difference]:
        """Make `items` everything there is. Objects that did not change are not reported."""
        wanted = {key_of(obj): obj for obj in items}
        gone = [obj for key, obj in self._objects.items() if key not in wanted]
        differences = [difference for obj in gone for difference in self.remove(obj)]
        for key, obj in wanted.items():
            if not _same(self._objects.get(key), obj):
                differences += self.put(obj)
        return differences

    def _set(self, key: str, new: Obj | None) -> None:
        if new is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = new
        for name, function in self._functions.items():
            self._index(name, function, key, new)
        for tally in self._tallies.values():
            tally.put(key, new)

    def _index(self, name: str, function: IndexFunction, key: str, new: Obj | None) -> None:
        index, known = self._indices[name], self._values[name]
        before = known.get(key, ())
        after: Sequence[str] = () if new is None else tuple(function(new))
        if before is not after and before != after:
            for value in before:
                found = index.get(value, {})
                found.pop(key, None)
                if not found:
                    index.pop(value, None)
            if after:
                known[key] = after
            else:
                known.pop(key, None)
        for value in after:
            assert new is not None
            index.setdefault(value, {})[key] = new


def _same(old: Obj | None, new: Obj) -> bool:
    if old is None:
        return False
    before, after = meta_of(old), meta_of(new)
    return bool(
        before.get("resourceVersion") == after.get("resourceVersion")
        and before.get("uid") == after.get("uid")
    )
