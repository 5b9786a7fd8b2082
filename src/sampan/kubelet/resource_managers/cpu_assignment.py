"""Which processors a container gets of those that are free: packed, spread, or distributed. Pure.

Job: so many of the available processors, whole NUMA nodes, sockets, caches and cores first, or
    evenly over NUMA nodes.
Invariant: the answer has exactly as many as were asked for, all of them available.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.resource_managers.cpu_sets import NO_CPUS, CpuSet
from sampan.kubelet.resource_managers.cpu_topology import CpuDetails, CpuTopology


class NotEnoughCpus(Exception):
    """In upstream's words."""


@dataclass(frozen=True, slots=True)
class Taking:
    """How processors are taken."""

    spread: bool = False  # over cores, not core by core
    by_uncore: bool = False  # a shared cache at a time, where that goes


PACKED = Taking()


def take_packed(
    topology: CpuTopology, available: CpuSet, count: int, how: Taking = PACKED
) -> CpuSet:
    """Raises NotEnoughCpus."""
    if count < 1:
        return NO_CPUS
    if count > len(available):
        raise NotEnoughCpus(
            f"not enough cpus available to satisfy request: requested={count}, "
            f"available={len(available)}"
        )
    accumulator = _Accumulator(topology, available, count, how)
    for step in accumulator.steps():
        step()
        if accumulator.missing < 1:
            return accumulator.taken
    raise NotEnoughCpus("failed to allocate cpus")


class _Accumulator:
    """Takes from what is left until nothing is missing."""

    def __init__(self, topology: CpuTopology, available: CpuSet, count: int, how: Taking) -> None:
        self._topology, self._whole, self._how = topology, topology.details, how
        self._left = topology.details.keep_only(available)
        self.missing, self.taken = count, NO_CPUS
        # As upstream: the larger of the two is taken first.
        self._numa_first = len(self._whole.sockets) >= len(self._whole.numa_nodes)

    def steps(self) -> Iterator[Callable[[], None]]:
        nodes, sockets = self._take_numa_nodes, self._take_sockets
        yield from (nodes, sockets) if self._numa_first else (sockets, nodes)
        if self._how.by_uncore:
            yield self._take_uncores
        if not self._how.spread:
            yield self._take_cores
        yield self._take_single

    def _take(self, cpus: CpuSet) -> None:
        self.taken |= cpus
        self._left = self._left.keep_only(self._left.cpus - cpus)
        self.missing -= len(cpus)

    def _take_whole(self, candidates: Iterable[CpuSet]) -> None:
        for cpus in list(candidates):
            if self.missing >= len(cpus):
                self._take(cpus)

    def _take_numa_nodes(self) -> None:
        self._take_whole(
            self._whole.in_numa(node)
            for node in self._numa_nodes()
            if len(self._left.in_numa(node)) == len(self._whole.in_numa(node))
        )

    def _take_sockets(self) -> None:
        self._take_whole(
            self._whole.in_socket(socket)
            for socket in self._sockets()
            if len(self._left.in_socket(socket)) == self._topology.cpus_per_socket
        )

    def _take_cores(self) -> None:
        self._take_whole(
            self._whole.in_core(core)
            for core in self._cores()
            if len(self._left.in_core(core)) == self._topology.cpus_per_core
        )

    def _take_uncores(self) -> None:
        for uncore in self._uncores():
            if self.missing >= self._topology.cpus_per_uncore:
                self._take_whole(
                    self._whole.in_uncore(free)
                    for free in self._uncores()
                    if len(self._left.in_uncore(free)) == len(self._whole.in_uncore(free))
                )
            if self.missing >= 1:
                self._take_part_of(uncore)
            if self.missing < 1:
                return

    def _take_part_of(self, uncore: int) -> None:
        per_core = self._topology.cpus_per_core
        wanted = -(-self.missing // per_core)
        there = self._left.cores_of(self._left.in_uncore(uncore))
        cpus = sorted(self._in_cores(sorted(there)[:wanted]))
        if self.missing % 2 and per_core > 1 and len(cpus) > self.missing:
            cpus.pop()
        if len(cpus) == self.missing:
            self._take(frozenset(cpus))

    def _in_cores(self, cores: Iterable[int]) -> CpuSet:
        return frozenset().union(*(self._left.in_core(core) for core in cores))

    def _take_single(self) -> None:
        if self._how.spread:
            order = [n for socket in self._sockets() for n in sorted(self._left.in_socket(socket))]
        else:
            order = [n for core in self._cores() for n in sorted(self._left.in_core(core))]
        for number in order:
            if self.missing < 1:
                return
            if number in self._left.cpus:
                self._take(frozenset((number,)))

    # In which order they are looked at: those with the fewest left first.

    def _numa_nodes(self) -> list[int]:
        if self._numa_first:
            return _fewest_first(self._left.numa_nodes, self._left.in_numa)
        return [
            node
            for socket in self._sockets()
            for node in _fewest_first(
                self._left.numa_of(self._left.in_socket(socket)), self._left.in_numa
            )
        ]

    def _sockets(self) -> list[int]:
        if not self._numa_first:
            return _fewest_first(self._left.sockets, self._left.in_socket)
        return [
            socket
            for node in self._numa_nodes()
            for socket in _fewest_first(
                self._left.sockets_of(self._left.in_numa(node)), self._left.in_socket
            )
        ]

    def _cores(self) -> list[int]:
        if self._numa_first:
            groups = [self._left.in_socket(socket) for socket in self._sockets()]
        else:
            groups = [self._left.in_numa(node) for node in self._numa_nodes()]
        return [
            core
            for group in groups
            for core in _fewest_first(self._left.cores_of(group), self._left.in_core)
        ]

    def _uncores(self) -> list[int]:
        return [
            uncore
            for node in self._numa_nodes()
            for uncore in _fewest_first(
                self._left.uncores_of(self._left.in_numa(node)), self._left.in_uncore
            )
        ]


def _fewest_first(groups: Collection[int], cpus: Callable[[int], CpuSet]) -> list[int]:
    return sorted(groups, key=lambda group: (len(cpus(group)), group))


def take_distributed(
    topology: CpuTopology, available: CpuSet, count: int, group: int, how: Taking = PACKED
) -> CpuSet:
    """Evenly over as few NUMA nodes as will do, `group` processors at a time. Raises
    NotEnoughCpus."""
    plain = Taking(how.spread)
    if count % group or not 1 <= count <= len(available):
        return take_packed(topology, available, count, plain)
    left = topology.details.keep_only(available)
    nodes = _Accumulator(topology, available, count, plain)._numa_nodes()
    for size in _sizes(topology, left, count, group):
        best = _best_balance(left, nodes, size, count, group)
        if best is None:
            continue
        taken = NO_CPUS
        for node, amount in best:
            taken |= take_packed(topology, left.in_numa(node) - taken, amount, plain)
        return taken
    return take_packed(topology, available, count, plain)


def _sizes(topology: CpuTopology, left: CpuDetails, count: int, group: int) -> range:
    """How many NUMA nodes it may take."""
    groups = (len(topology.cpus) - 1) // group + 1
    per_node = (groups - 1) // len(topology.details.numa_nodes) + 1
    wanted = (count - 1) // group + 1
    return range((wanted - 1) // per_node + 1, min(wanted, len(left.numa_nodes)) + 1)


Shares = list[tuple[int, int]]  # NUMA node, how many of it at a time, in this order


def _best_balance(
    left: CpuDetails, nodes: Sequence[int], size: int, count: int, group: int
) -> Shares | None:
    """What leaves the NUMA nodes as even as possible; None: it does not go with so few."""
    best, best_balance = None, math.inf
    for some in combinations(nodes, size):
        if best_balance == 0:
            break
        free = {node: len(left.in_numa(node)) for node in nodes}
        each = count // size // group * group
        groups = sum(free[node] // group for node in some)
        if groups * group < count or any(free[node] < each for node in some):
            continue
        for node in some:
            free[node] -= each
        rest, balance = _remainder(free, some, count - each * size, group)
        if balance < best_balance:
            best, best_balance = [*((node, each) for node in some), *rest], balance
    return best


def _remainder(
    free: dict[int, int], some: Sequence[int], left_over: int, group: int
) -> tuple[Shares, float]:
    """What does not divide evenly, over those of `some` that still have room."""
    if not left_over:
        return [], _deviation(list(free.values()))
    roomy = [node for node in some if free[node] >= group]
    best: Shares = []
    best_balance = math.inf
    for size in range(len(roomy), 0, -1):
        for subset in combinations(roomy, size):
            if sum(free[node] // group * group for node in subset) < left_over:
                continue
            after, shares = dict(free), []
            remaining = left_over
            while remaining > 0:
                for node in subset:
                    if remaining > 0 and after[node] >= group:
                        after[node] -= group
                        remaining -= group
                        shares.append((node, group))
            balance = _deviation(list(after.values()))
            if balance < best_balance:
                best, best_balance = shares, balance
    return best, best_balance


def _deviation(amounts: Sequence[int]) -> float:
    """Rounded as upstream does it, half away from zero: ties decide."""
    mean = _rounded(sum(amounts) / len(amounts))
    variance = sum((amount - mean) ** 2 for amount in amounts) / len(amounts)
    return _rounded(math.sqrt(variance))


def _rounded(number: float) -> float:
    return math.floor(number * 1000 + 0.5) / 1000
