"""What a simulated node pretends beside its pods: device plugins, CSI drivers, prepared claims.

Job: one frozen value for a node, and what the annotations of its Node say has gone wrong. Pure.

Under `simulated.sampan.dev/`, on the Node:
    unhealthy-devices    `device-0,device-3`: of its device plugins
    drivers-away         `example.com/gpu,disk.example.com`: a plugin's resource, a driver of CSI or
                         of DRA that does not answer there
"""

from collections.abc import Mapping
from dataclasses import field

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.simulated.script import PREFIX


@dataclass(frozen=True, slots=True)
class PretendedPlugin:
    """A device plugin; its devices are device-0, device-1, …"""

    resource: str
    count: int

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(f"device-{number}" for number in range(self.count))


@dataclass(frozen=True, slots=True)
class PretendedDriver:
    """A CSI driver, as it is on one node."""

    name: str
    most_volumes: int = 0  # 0: as many as one likes
    topology: Mapping[str, str] = field(default_factory=dict)  # segments of this node
    capacity_bytes: int | None = None  # of each segment; None: without end
    attaches: bool = True


@dataclass(frozen=True, slots=True)
class Pretence:
    plugins: tuple[PretendedPlugin, ...] = ()
    drivers: tuple[PretendedDriver, ...] = ()
    known_drivers: frozenset[str] = frozenset()  # of CSI, on any node of the cluster
    prepares: bool = False  # claims are prepared, which may fail

    @property
    def is_any(self) -> bool:
        return bool(self.plugins or self.known_drivers or self.prepares)


@dataclass(frozen=True, slots=True)
class Troubles:
    sick: frozenset[str] = frozenset()
    away: frozenset[str] = frozenset()


NOTHING_PRETENDED = Pretence()


def troubles_of(annotations: Mapping[str, str]) -> Troubles:
    return Troubles(*(
        frozenset(_items(annotations.get(PREFIX + word, "")))
        for word in ("unhealthy-devices", "drivers-away")
    ))  # fmt: skip


def _items(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
