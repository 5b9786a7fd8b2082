"""Processors of a machine: which core, socket, NUMA node and cache each belongs to. Pure.

Job: answer which processors are where, of all of them or of those that are left.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.resource_managers.cpu_sets import CpuSet


@dataclass(frozen=True, slots=True)
class Cpu:
    core: int  # the lowest of the processors that share it, so that no two cores have one number
    socket: int
    numa: int
    uncore: int  # the cache that cores share beside their own


class CpuDetails:
    """Some processors, found by where they are."""

    __slots__ = ("_by_core", "_by_numa", "_by_socket", "_by_uncore", "_cpus")

    def __init__(self, cpus: Mapping[int, Cpu]) -> None:
        self._cpus = cpus
        self._by_core = _grouped((cpu.core, number) for number, cpu in cpus.items())
        self._by_socket = _grouped((cpu.socket, number) for number, cpu in cpus.items())
        self._by_numa = _grouped((cpu.numa, number) for number, cpu in cpus.items())
        self._by_uncore = _grouped((cpu.uncore, number) for number, cpu in cpus.items())

    def __getitem__(self, number: int) -> Cpu:
        return self._cpus[number]

    def keep_only(self, numbers: Collection[int]) -> "CpuDetails":
        return CpuDetails({n: cpu for n, cpu in self._cpus.items() if n in numbers})

    @property
    def cpus(self) -> CpuSet:
        return frozenset(self._cpus)

    @property
    def numa_nodes(self) -> list[int]:
        return sorted(self._by_numa)

    @property
    def sockets(self) -> list[int]:
        return sorted(self._by_socket)

    @property
    def cores(self) -> list[int]:
        return sorted(self._by_core)

    def in_core(self, core: int) -> CpuSet:
        return self._by_core.get(core, frozenset())

    def in_socket(self, socket: int) -> CpuSet:
        return self._by_socket.get(socket, frozenset())

    def in_numa(self, *nodes: int) -> CpuSet:
        return frozenset().union(*(self._by_numa.get(node, ()) for node in nodes))

    def in_uncore(self, uncore: int) -> CpuSet:
        return self._by_uncore.get(uncore, frozenset())

    def cores_of(self, numbers: Iterable[int]) -> set[int]:
        return {self._cpus[number].core for number in numbers}

    def sockets_of(self, numbers: Iterable[int]) -> set[int]:
        return {self._cpus[number].socket for number in numbers}

    def numa_of(self, numbers: Iterable[int]) -> set[int]:
        return {self._cpus[number].numa for number in numbers}

    def uncores_of(self, numbers: Iterable[int]) -> set[int]:
        return {self._cpus[number].uncore for number in numbers}


@dataclass(frozen=True, slots=True)
class CpuTopology:
    """Of a whole machine."""

    cpus: Mapping[int, Cpu]
    details: CpuDetails = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", CpuDetails(self.cpus))

    @property
    def cpus_per_core(self) -> int:
        return len(self.cpus) // len(self.details.cores) if self.cpus else 0

    @property
    def cpus_per_socket(self) -> int:
        return len(self.cpus) // len(self.details.sockets) if self.cpus else 0

    @property
    def cpus_per_uncore(self) -> int:
        caches = len(self.details.uncores_of(self.cpus))
        return len(self.cpus) // caches if caches else 0


def _grouped(pairs: Iterable[tuple[int, int]]) -> dict[int, CpuSet]:
    found: dict[int, set[int]] = {}
    for group, number in pairs:
        found.setdefault(group, set()).add(number)
    return {group: frozenset(numbers) for group, numbers in found.items()}
