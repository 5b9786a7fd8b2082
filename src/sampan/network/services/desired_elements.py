"""What the proxy's maps should hold, kept up Service by Service.

Job: fold one Service's elements into the whole, and say what changes. Pure.
Invariant: an element that several Services ask for stays until the last of them lets go; where they
    want different values for it, the first who asked has it.
Owner: ServiceProxy.
"""

from collections.abc import Iterator

from sampan.network.nftables.elements import Data
from sampan.network.services.elements_of_service import ElementKey, Elements

Change = tuple[ElementKey, Data, bool]  # key, value, gone


class DesiredElements:
    def __init__(self, present: Elements | None = None) -> None:
        """`present` is what an earlier proxy left: taken over, and removed unless asked for."""
        self._values: Elements = dict(present or {})
        self._unclaimed: set[ElementKey] = set(self._values)
        self._owners: dict[ElementKey, str] = {}
        self._waiting: dict[ElementKey, dict[str, Data]] = {}  # who else asked, in order
        self._of_service: dict[str, Elements] = {}

    def __len__(self) -> int:
        return len(self._values)

    def elements_of(self, service: str) -> Elements:
        return self._of_service.get(service, {})

    def put(self, service: str, elements: Elements) -> list[Change]:
        """The Service's elements from now on; empty where it is gone."""
        before = self._of_service.get(service, {})
        if elements:
            self._of_service[service] = elements
        else:
            self._of_service.pop(service, None)
        changes: list[Change] = []
        for key in before:
            if key not in elements:
                changes += self._released(service, key)
        for key, value in elements.items():
            if key not in before or before[key] != value:
                changes += self._claimed(service, key, value)
        return changes

    def adopted(self) -> list[Change]:
        """Every Service was put: what nobody asked for goes."""
        changes: list[Change] = [(key, None, True) for key in self._unclaimed]
        for key in self._unclaimed:
            del self._values[key]
        self._unclaimed.clear()
        return changes

    def _claimed(self, service: str, key: ElementKey, value: Data) -> Iterator[Change]:
        owner = self._owners.get(key)
        if owner is not None and owner != service:
            self._waiting.setdefault(key, {})[service] = value
            return
        self._owners[key] = service
        self._unclaimed.discard(key)
        if key in self._values:
            if self._values[key] == value:
                return
            yield key, None, True
        self._values[key] = value
        yield key, value, False

    def _released(self, service: str, key: ElementKey) -> Iterator[Change]:
        waiting = self._waiting.get(key, {})
        if self._owners.get(key) != service:
            waiting.pop(service, None)
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
        yield from self._claimed(heir, key, value)
