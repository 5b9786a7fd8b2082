"""Zone disruption: the eviction rate of a zone's nodes. Slower when much of the zone is down,
none when all of it is, for then it is more likely us who are cut off.

Job: the state of each zone, and the pace of evictions in it. Pure; upstream's numbers.
"""

from collections.abc import Callable, Iterable
from enum import Enum

from sampan.api.objects import Obj, labels_of
from sampan.api.rules.nodes import is_ready
from sampan.core.fast_dataclass import dataclass

NORMAL_PER_SECOND = 0.1
SECONDARY_PER_SECOND = 0.01
LARGE_ZONE = 50  # in smaller ones the secondary pace is: none
UNHEALTHY_SHARE = 0.55
EXCLUDED = "node.kubernetes.io/exclude-disruption"
READY, NOT_READY = " ready", " not ready"  # no label's value ends in either


class ZoneState(Enum):
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


@dataclass(frozen=True, slots=True)
class Zone:
    state: ZoneState
    size: int


def zone_of(node: Obj) -> str:
    labels = labels_of(node)
    region = labels.get("topology.kubernetes.io/region", "")
    return f"{region}:{labels.get('topology.kubernetes.io/zone', '')}"


def by_zone_and_readiness(node: Obj) -> Iterable[str]:
    """An index of nodes: how many of a zone are ready is the size of two of its entries."""
    if EXCLUDED in labels_of(node):
        return ()  # what is taken down on purpose is no disruption
    return (f"{zone_of(node)}{READY if is_ready(node) else NOT_READY}",)


def zones_of(entries: Iterable[str], count: Callable[[str], int]) -> dict[str, Zone]:
    """From that index: its entries, and how many nodes each has. Costs what there are zones."""
    names = {entry.removesuffix(NOT_READY).removesuffix(READY) for entry in entries}
    counts = {name: (count(name + READY), count(name + NOT_READY)) for name in names}
    return {name: Zone(_state(*both), sum(both)) for name, both in counts.items()}


def all_down(zones: dict[str, Zone]) -> bool:
    """Nobody is evicted then: it is more likely that we are cut off than that all nodes are."""
    return all(zone.state is ZoneState.FULL for zone in zones.values())


def evictions_per_second(zones: dict[str, Zone], zone: str) -> float:
    """0 where nothing may be evicted now."""
    if all_down(zones):
        return 0.0
    found = zones.get(zone)
    if found is None or found.state is not ZoneState.PARTIAL:
        return NORMAL_PER_SECOND
    return SECONDARY_PER_SECOND if found.size > LARGE_ZONE else 0.0


class EvictionPace:
    """When each zone may lose its next node. Owner: the node lifecycle controller."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def seconds_left(self, zone: str, now: float) -> float:
        return max(0.0, self._next.get(zone, 0.0) - now)

    def used(self, zone: str, per_second: float, now: float) -> None:
        self._next[zone] = now + 1.0 / per_second


def _state(ready: int, not_ready: int) -> ZoneState:
    if ready == 0 and not_ready > 0:
        return ZoneState.FULL
    if not_ready > 2 and not_ready / (ready + not_ready) >= UNHEALTHY_SHARE:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL
