"""CPU manager's static policy: processors of their own for Guaranteed containers. Pure.

Job: what a container asks for and who has what → the processors it gets, topology hints.
Invariant: a processor is in the shared pool or has one container, but for init containers of the
    same pod, which have ended before the others start.
Invariant: reserved processors are nobody's own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field

from sampan.api.objects import Obj, uid_of
from sampan.api.quantity import value_of
from sampan.api.rules.pods import containers, init_containers, is_sidecar
from sampan.api.rules.qos import qos_class
from sampan.core.fast_dataclass import dataclass, replace
from sampan.kubelet.resource_managers.cpu_assignment import (
    NotEnoughCpus,
    Taking,
    take_distributed,
    take_packed,
)
from sampan.kubelet.resource_managers.cpu_options import CpuOptions
from sampan.kubelet.resource_managers.cpu_sets import NO_CPUS, CpuSet, cpus_text
from sampan.kubelet.resource_managers.cpu_topology import CpuTopology
from sampan.kubelet.resource_managers.numa import Hint, Mask, bits_of, count, mask_of, masks_of
from sampan.kubelet.resource_managers.pod_level_requests import has_pod_level_requests, most_at_once

Assignments = Mapping[str, Mapping[str, CpuSet]]  # by uid and container


class SmtAlignmentError(Exception):
    """Whole cores only, and these are none. In upstream's words."""


class BadCpuState(Exception):
    """What was stored cannot be true. In upstream's words."""


@dataclass(frozen=True, slots=True)
class CpuState:
    shared: CpuSet = NO_CPUS  # upstream's default set
    assigned: Assignments = field(default_factory=dict)

    def of(self, uid: str, container: str) -> CpuSet | None:
        return self.assigned.get(uid, {}).get(container)

    def of_pod(self, uid: str) -> CpuSet:
        return NO_CPUS.union(*self.assigned.get(uid, {}).values())

    def exclusive(self) -> CpuSet:
        """All that is somebody's own."""
        return NO_CPUS.union(*(self.of_pod(uid) for uid in self.assigned))

    def with_container(self, uid: str, container: str, cpus: CpuSet) -> "CpuState":
        of_pod = {**self.assigned.get(uid, {}), container: cpus}
        return CpuState(self.shared - cpus, {**self.assigned, uid: of_pod})

    def without_pod(self, uid: str) -> "CpuState":
        others = {name: of_pod for name, of_pod in self.assigned.items() if name != uid}
        return CpuState(self.shared | self.of_pod(uid), others)


@dataclass(frozen=True, slots=True)
class StaticPolicy:
    topology: CpuTopology
    reserved: CpuSet
    options: CpuOptions = CpuOptions()

    # What is there.

    def initial(self) -> CpuState:
        return CpuState(self._pool())

    def _pool(self) -> CpuSet:
        cpus = self.topology.details.cpus
        return cpus - self.reserved if self.options.strict_reservation else cpus

    def allocatable(self) -> CpuSet:
        return self.topology.details.cpus - self.reserved

    def check(self, state: CpuState) -> None:
        """May this have been stored on this machine? Raises BadCpuState."""
        if not state.shared and not self.options.strict_reservation:
            raise BadCpuState("default cpuset cannot be empty")
        reserved, shared = cpus_text(self.reserved), cpus_text(state.shared)
        if self.options.strict_reservation:
            if both := self.reserved & state.shared:
                raise BadCpuState(
                    f'some of strictly reserved cpus: "{cpus_text(both)}" are present in '
                    f'defaultCpuSet: "{shared}"'
                )
        elif not self.reserved <= state.shared:
            raise BadCpuState(
                f'not all reserved cpus: "{reserved}" are present in defaultCpuSet: "{shared}"'
            )
        for uid, of_pod in state.assigned.items():
            for container, cpus in of_pod.items():
                if cpus & state.shared:
                    raise BadCpuState(
                        f'pod: {uid}, container: {container} cpuset: "{cpus_text(cpus)}" overlaps '
                        f'with default cpuset "{shared}"'
                    )
        known = state.shared | state.exclusive()
        if known != self._pool():
            raise BadCpuState(
                f'current set of available CPUs "{cpus_text(self._pool())}" doesn\'t match with '
                f'CPUs in state "{cpus_text(known)}"'
            )

    # Who gets what.

    def allocated(
        self, state: CpuState, pod: Obj, container: Obj, affinity: Mask | None, reusable: CpuSet
    ) -> CpuState:
        """The same where it asks for nothing of its own. Raises NotEnoughCpus,
        SmtAlignmentError."""
        wanted = exclusive_cpus(pod, container)
        uid, name = uid_of(pod), container["name"]
        if not wanted:
            return state
        self._check_cores(state, wanted)
        if state.of(uid, name) is not None:
            return state
        return state.with_container(uid, name, self._chosen(state, wanted, affinity, reusable))

    def _check_cores(self, state: CpuState, wanted: int) -> None:
        if not self.options.full_cores:
            return
        per_core = self.topology.cpus_per_core
        if wanted % per_core:
            raise SmtAlignmentError(
                f"SMT Alignment Error: requested {wanted} cpus not multiple cpus per core = "
                f"{per_core}"
            )
        details = self.topology.details
        siblings = NO_CPUS.union(*(details.in_core(n) for n in details.cores_of(self.reserved)))
        available = len(state.shared - siblings)
        if wanted > available:
            raise SmtAlignmentError(
                "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = "
                f"{available}, requested CPUs = {wanted}, CPUs per core = {per_core}"
            )

    def _chosen(
        self, state: CpuState, wanted: int, affinity: Mask | None, reusable: CpuSet
    ) -> CpuSet:
        available = (state.shared - self.reserved) | reusable
        taken = NO_CPUS
        if affinity is not None:
            aligned = available & self._aligned(affinity)
            taken = self.take(aligned, min(wanted, len(aligned)))
        return taken | self.take(available - taken, wanted - len(taken))

    def _aligned(self, affinity: Mask) -> CpuSet:
        details = self.topology.details
        within = details.in_numa(*bits_of(affinity))
        if not self.options.align_by_socket:
            return within
        return NO_CPUS.union(*(details.in_socket(n) for n in details.sockets_of(within)))

    def take(self, available: CpuSet, wanted: int) -> CpuSet:
        """Raises NotEnoughCpus."""
        how = Taking(self.options.across_cores, self.options.align_by_uncore)
        if self.options.across_numa:
            group = self.topology.cpus_per_core if self.options.full_cores else 1
            return take_distributed(self.topology, available, wanted, group, how)
        return take_packed(self.topology, available, wanted, how)

    # Hints. None: it does not mind.

    def container_hints(
        self, state: CpuState, pod: Obj, container: Obj, reusable: CpuSet
    ) -> list[Hint] | None:
        wanted = exclusive_cpus(pod, container)
        if not wanted:
            return None
        held = state.of(uid_of(pod), container["name"])
        if held is None:
            return self._hints(state.shared - self.reserved, reusable, wanted)
        return self._hints(held, NO_CPUS, wanted) if len(held) == wanted else []

    def pod_hints(self, state: CpuState, pod: Obj, reusable: CpuSet) -> list[Hint] | None:
        wanted = most_at_once(pod, lambda container: exclusive_cpus(pod, container))
        if not wanted:
            return None
        uid, held = uid_of(pod), NO_CPUS
        for container in (*init_containers(pod), *containers(pod)):
            given = state.of(uid, container["name"])
            if given is None:
                continue
            if len(given) != exclusive_cpus(pod, container):
                return []
            held |= given
        if len(held) == wanted:
            return self._hints(held, NO_CPUS, wanted)
        return self._hints(state.shared - self.reserved, reusable | held, wanted)

    def _hints(self, available: CpuSet, reusable: CpuSet, wanted: int) -> list[Hint]:
        details = self.topology.details
        nodes = details.numa_nodes
        narrowest, possible = len(nodes), []
        needed = mask_of(details.numa_of(reusable))
        for mask in masks_of(nodes):
            within = details.in_numa(*bits_of(mask))
            if len(within) >= wanted:
                narrowest = min(narrowest, count(mask))
            if needed & ~mask == 0 and len(reusable) + len(available & within) >= wanted:
                possible.append(mask)
        return [Hint(mask, self._is_preferred(mask, narrowest)) for mask in possible]

    def _is_preferred(self, mask: Mask, narrowest: int) -> bool:
        if count(mask) == narrowest:
            return True
        details = self.topology.details
        per_socket = len(details.numa_nodes) // len(details.sockets)
        if not self.options.align_by_socket or not per_socket:
            return False
        fewest = -(-narrowest // per_socket)
        return len(details.sockets_of(details.in_numa(*bits_of(mask)))) == fewest


def static_policy(
    topology: CpuTopology, count_reserved: int, given: CpuSet, options: CpuOptions
) -> StaticPolicy:
    """`given`: which processors are reserved; else so many are chosen. Raises BadCpuState."""
    bare = StaticPolicy(topology, NO_CPUS, options)
    reserved = given
    if not given:
        try:
            reserved = bare.take(topology.details.cpus, count_reserved)
        except NotEnoughCpus:
            reserved = NO_CPUS
    if len(reserved) != count_reserved:
        raise BadCpuState(
            "[cpumanager] unable to reserve the required amount of CPUs (size of "
            f"{cpus_text(reserved)} did not equal {count_reserved})"
        )
    if unknown := reserved - topology.details.cpus:
        raise BadCpuState(
            "[cpumanager] unable to build the reserved physical CPUs from the reserved set: "
            f"unknown CPU ID: {min(unknown)}"
        )
    return replace(bare, reserved=reserved)


def exclusive_cpus(pod: Obj, container: Obj) -> int:
    """How many processors of its own a container asks for."""
    if qos_class(pod) != "Guaranteed" or has_pod_level_requests(pod):
        return 0
    asked = value_of(_asked(container).get("cpu", "0"))
    return asked.value() if asked.milli() == asked.value() * 1000 else 0


def _asked(container: Obj) -> Mapping[str, str]:
    requests: Mapping[str, str] = (container.get("resources") or {}).get("requests") or {}
    return requests


def reusable_after(pod: Obj, container: Obj, reusable: CpuSet, given: Iterable[int]) -> CpuSet:
    """What an init container had is free for those after it; what others have is not."""
    name = container["name"]
    if any(item["name"] == name and not is_sidecar(item) for item in init_containers(pod)):
        return reusable.union(given)
    return reusable.difference(given)
