"""What sets and maps should hold, kept up object by object (Service, pod).

Job: fold one object's elements into the whole, and say what changes. Pure.
Invariant: an element that several objects ask for stays until the last of them lets go; where they
    want different values for it, the first who asked has it.
Invariant: elements that belong together (`group_of`) are all one object's: the first who asked for
    any of them.
Owner: ServiceProxy, PolicyEnforcer.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence

from sampan.network.nftables.elements import Data, ElementKey, Elements, Verdict

Change = tuple[ElementKey, Data, bool]  # key, value, gone


class DesiredElements:
    def __init__(
        self,
        present: Elements | None = None,
        group_of: Callable[[ElementKey], Hashable] | None = None,
    ) -> None:
        """`present` is what an earlier proxy left: taken over, and removed unless asked for.
        `group_of`: what an element belongs to; None: each stands for itself."""
        self._values: Elements = dict(present or {})
        self._unclaimed: set[ElementKey] = set(self._values)
        self._group_of = group_of
        # By group: who asks for how many elements of it. The first one has it.
        self._claims: dict[Hashable, dict[str, int]] = {}
        self._of_owner: dict[str, Elements] = {}

    def __len__(self) -> int:
        return len(self._values)

    def owners(self) -> list[str]:
        return list(self._of_owner)

    def chains(self) -> set[str]:
        """Those that any element leads to."""
        return {value.chain for value in self._values.values() if isinstance(value, Verdict)}

    def elements_of(self, owner: str) -> Elements:
        """Those that it asked for and has."""
        asked = self._of_owner.get(owner, {})
        return {key: value for key, value in asked.items() if self._has(owner, key)}

    def put(self, owner: str, elements: Elements) -> list[Change]:
        """The object's elements from now on; empty where it is gone."""
        before = self._of_owner.get(owner, {})
        if elements:
            self._of_owner[owner] = elements
        else:
            self._of_owner.pop(owner, None)
        changes: list[Change] = []
        # First what it asks for: who changes all elements of a group keeps the group.
        for key, value in elements.items():
            if key not in before:
                claims = self._claims.setdefault(self._group(key), {})
                claims[owner] = claims.get(owner, 0) + 1
            elif before[key] == value:
                continue
            if self._has(owner, key):
                changes += self._set(key, value)
        for key in before:
            if key not in elements:
                changes += self._release(owner, key)
        return changes

    def adopted(self) -> list[Change]:
        """Every object was put: what nobody asked for goes."""
        changes: list[Change] = [(key, None, True) for key in self._unclaimed]
        for key in self._unclaimed:
            del self._values[key]
        self._unclaimed.clear()
        return changes

    def _group(self, key: ElementKey) -> Hashable:
        return key if self._group_of is None else self._group_of(key)

    def _has(self, owner: str, key: ElementKey) -> bool:
        return next(iter(self._claims[self._group(key)])) == owner

    def _set(self, key: ElementKey, value: Data) -> Iterator[Change]:
        self._unclaimed.discard(key)
        if key in self._values:
            if self._values[key] == value:
                return
            yield key, None, True
        self._values[key] = value
        yield key, value, False

    def _release(self, owner: str, key: ElementKey) -> Iterator[Change]:
        group, had = self._group(key), self._has(owner, key)
        claims = self._claims[group]
        claims[owner] -= 1
        is_free = not claims[owner]
        if is_free:
            del claims[owner]
            if not claims:
                del self._claims[group]
        heirs = self._elements_in(group, key, claims) if had and is_free else {}
        if had and key not in heirs:
            del self._values[key]
            yield key, None, True
        for each, value in heirs.items():
            yield from self._set(each, value)

    def _elements_in(self, group: Hashable, key: ElementKey, claims: dict[str, int]) -> Elements:
        """What the next in the row asks for of a group, one element of which is `key`."""
        heir = next(iter(claims), None)
        if heir is None:
            return {}
        asked = self._of_owner[heir]
        if self._group_of is None:
            return {key: asked[key]}
        return {each: value for each, value in asked.items() if self._group_of(each) == group}


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
