"""Allocated cluster IPs and node ports, of one Service and of all.

Job: read them of a service; count those of all services, change by change.
Invariant: the counts are what counting all services anew would give.
Owner: the API server, which has it follow the watch cache.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

from sampan.api.calls import Item
from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.holding import Outcome

T = TypeVar("T")


@dataclass(slots=True)
class Allocated:
    ips: set[str] = field(default_factory=set)
    ports: set[int] = field(default_factory=set)

    def note(self, outcome: Outcome, ips: set[str], ports: set[int]) -> None:
        if outcome is Outcome.COMMITTED:
            self.ips |= ips
            self.ports |= ports


def allocated_to(service: Obj | None) -> Allocated:
    """The addresses and node ports that a service has."""
    spec = (service or {}).get("spec") or {}
    ips = {spec.get("clusterIP"), *(spec.get("clusterIPs") or ())} - {None, "", "None"}
    ports = [spec.get("healthCheckNodePort")]
    ports += [port.get("nodePort") for port in spec.get("ports") or ()]
    return Allocated(ips, {port for port in ports if port})


class AllAllocated:
    def __init__(self, services: Callable[[], list[Obj]]) -> None:
        self._services = services
        self._counted = False
        self._ips: Counter[str] = Counter()
        self._ports: Counter[int] = Counter()

    def has_ip(self, ip: str) -> bool:
        self._count_once()
        return ip in self._ips

    def ports(self) -> set[int]:
        self._count_once()
        return set(self._ports)

    def forget(self) -> None:
        """Nothing that was counted holds: it is counted anew when somebody asks."""
        self._counted = False

    def change(self, before: Item | None, now: Item | None) -> None:
        if not self._counted:
            return
        for item, sign in ((before, -1), (now, 1)):
            if item is not None:
                self._add(item.obj, sign)

    def _count_once(self) -> None:
        if self._counted:
            return
        self._counted = True
        self._ips.clear()
        self._ports.clear()
        for service in self._services():
            self._add(service, 1)

    def _add(self, service: Obj, sign: int) -> None:
        has = allocated_to(service)
        _count(self._ips, has.ips, sign)
        _count(self._ports, has.ports, sign)


def _count(counts: Counter[T], values: set[T], sign: int) -> None:
    for value in values:
        counts[value] += sign
        if not counts[value]:
            del counts[value]
