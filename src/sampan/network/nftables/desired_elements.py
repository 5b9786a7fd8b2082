"""What sets and maps should hold, kept up object by object (Service, pod).

Job: fold one object's elements into the whole, and say what changes. Pure.
Invariant: an element that several objects ask for stays until the last of them lets go; where they
    want different values for it, the first who asked has it.
Owner: ServiceProxy, PolicyEnforcer.
"""

from collections.abc import Iterator, Sequence

from sampan.network.nftables.elements import Data, ElementKey, Elements, Verdict

Change = tuple[ElementKey, Data, bool]  # key, value, gone


class DesiredElements:
    def __init__(self, present: Elements | None = None) -> None:
        """`present` is what an earlier proxy left: taken over, and removed unless asked for."""
        self._values: Elements = dict(present or {})
        self._unclaimed: set[ElementKey] = set(self._values)
        self._owners: dict[ElementKey, str] = {}
        self._waiting: dict[ElementKey, dict[str, Data]] = {}  # who else asked, in order
        self._of_owner: dict[str, Elements] = {}

    def __len__(self) -> int:
        return len(self._values)

    def owners(self) -> list[str]:
        return list(self._of_owner)

    def chains(self) -> set[str]:
        """Those that any element leads to."""
        return {value.chain for value in self._values.values() if isinstance(value, Verdict)}

    def elements_of(self, owner: str) -> Elements:
        return self._of_owner.get(owner, {})

    def put(self, owner: str, elements: Elements) -> list[Change]:
        """The object's elements from now on; empty where it is gone."""
        before = self._of_owner.get(owner, {})
        if elements:
            self._of_owner[owner] = elements
        else:
            self._of_owner.pop(owner, None)
        changes: list[Change] = []
        for key in before:
            if key not in elements:
                changes += self._release(owner, key)
        for key, value in elements.items():
            if key not in before or before[key] != value:
                changes += self._claim(owner, key, value)
        return changes

    def adopted(self) -> list[Change]:
        """Every object was put: what nobody asked for goes."""
        changes: list[Change] = [(key, None, True) for key in self._unclaimed]
        for key in self._unclaimed:
            del self._values[key]
        self._unclaimed.clear()
        return changes

    def _claim(self, owner: str, key: ElementKey, value: Data) -> Iterator[Change]:
        holder = self._owners.get(key)
        if holder is not None and holder != owner:
            self._waiting.setdefault(key, {})[owner] = value
            return
        self._owners[key] = owner
        self._unclaimed.discard(key)
        if key in self._values:
            if self._values[key] == value:
                return
            yield key, None, True
        self._values[key] = value
        yield key, value, False

    def _release(self, owner: str, key: ElementKey) -> Iterator[Change]:
        waiting = self._waiting.get(key, {})
        if self._owners.get(key) != owner:
            waiting.pop(owner, None)
            if not waiting:
                self._waiting.pop(key, None)
            return
        del self._owners[key]
        if not waiting:
            del self._values[key]
            yield key, None, True
            return
        heir = next(iter(waiting))
        value = waiting.pop(heir)
        if not waiting:
            del self._waiting[key]
        yield from self._claim(heir, key, value)


def net_changes(changes: Sequence[Change]) -> list[Change]:
    """One removal and one addition per element at most: what several objects did to it in turn
    adds up to its first removal and its last value."""
    removed: dict[ElementKey, Change] = {}
    added: dict[ElementKey, Change] = {}
    for change in changes:
        key, _, gone = change
        if not gone:
            added[key] = change
        elif key in added:
            del added[key]
        else:
            removed.setdefault(key, change)
    return [*removed.values(), *added.values()]
