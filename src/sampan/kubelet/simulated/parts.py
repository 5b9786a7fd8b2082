"""What a simulated runtime is made of: its sandboxes and containers, addresses and names.

Job: the state of one sandbox and one container; addresses of a subnet; ids as long as real ones.
Invariant: an address is given to one sandbox at a time.
Owner: SimulatedRuntime.
"""

import asyncio
import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from hashlib import blake2b

from sampan.core.fast_dataclass import dataclass
from sampan.core.flag import Flag
from sampan.kubelet.contracts.runtime import (
    ContainerStatus,
    Role,
    RuntimeEvent,
    RuntimeFailure,
    SandboxStatus,
)
from sampan.kubelet.simulated.script import Script

EVENTS_BOUND = 10_000


@dataclass(slots=True)
class SimulatedContainer:
    status: ContainerStatus
    script: Script
    role: Role = Role.NORMAL
    exit_timer: asyncio.TimerHandle | None = None
    ended: list[asyncio.Future[None]] = field(default_factory=list)


@dataclass(slots=True)
class SimulatedSandbox:
    status: SandboxStatus
    containers: dict[str, SimulatedContainer] = field(default_factory=dict)


class Listener:
    """Who reads the runtime's events, and those that it has still to read."""

    __slots__ = ("_events", "_more", "_next")

    def __init__(self) -> None:
        self._events: list[RuntimeEvent | None] = []
        self._next: list[RuntimeEvent | None] = []  # before those, and the last one first
        self._more = Flag()

    def tell(self, event: RuntimeEvent | None) -> None:
        """None: it ends. Whoever does not read in time is cut, and looks at everything then."""
        if len(self._events) + len(self._next) >= EVENTS_BOUND:
            self._events, self._next = [None], []
        else:
            self._events.append(event)
        self._more.set()

    async def next(self) -> RuntimeEvent | None:
        while not self._next:
            while not self._events:
                self._more.clear()
                await self._more.wait()
            self._next, self._events = self._events, []
            self._next.reverse()
        return self._next.pop()


class Hearer:
    """Who is called with the runtime's events; as one who reads them, in the next turn of the event
    loop."""

    __slots__ = ("_events", "_hear")

    def __init__(self, hear: Callable[[RuntimeEvent | None], None]) -> None:
        self._hear = hear
        self._events: list[RuntimeEvent | None] = []

    def tell(self, event: RuntimeEvent | None) -> None:
        if not self._events:
            asyncio.get_running_loop().call_soon(self._pass_on)
        self._events.append(event)

    def _pass_on(self) -> None:
        events, self._events = self._events, []
        for event in events:
            self._hear(event)


class Addresses:
    """Of one subnet, one after the other, so that a free one is seldom the one that was just
    given back."""

    def __init__(self, subnet: str) -> None:
        head, _, length = subnet.partition("/")
        first = ipaddress.ip_address(head)
        self._subnet, self._version = subnet, type(first)
        self._first, self._count = int(first), 2 ** (first.max_prefixlen - int(length))
        self._last = 1
        self._taken: set[str] = set()

    def take(self) -> str:
        for _ in range(self._count):
            self._last = self._last % (self._count - 2) + 1
            address = str(self._version(self._first + self._last))
            if address not in self._taken:
                self._taken.add(address)
                return address
        raise RuntimeFailure(f"no free address in {self._subnet}")

    def reserve(self, addresses: Iterable[str]) -> None:
        """Somebody has them already; those of another subnet do no harm."""
        self._taken.update(addresses)

    def give_back(self, addresses: "tuple[str, ...]") -> None:
        self._taken.difference_update(addresses)


def shared_notes(notes: Mapping[str, str]) -> Mapping[str, str]:
    """Equal ones once: containers of one template have the same annotations, on all nodes."""
    return _shared_notes(tuple(notes.items()))


@lru_cache(maxsize=4096)
def _shared_notes(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(items)


def digits_of(seed: str) -> str:
    """Sixty-four of them, as of a real id, and the same in every run of a test."""
    return blake2b(seed.encode(), digest_size=32).hexdigest()
