"""CPU manager: processors of their own for Guaranteed containers, the shared pool for others.

Job: give processors by the static policy, keep that on disk, say which container runs where.
Invariant: what is given is on disk before its container starts.
Owner: ResourceAdmission asks it for containers; Cpusets has running containers follow it.
"""

from collections.abc import Callable
from typing import Any

from sampan.api.objects import Obj, uid_of
from sampan.api.rules.pods import containers, init_containers
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.resources_hook import Grants, PodRefused, unexpected
from sampan.kubelet.resource_managers.cpu_assignment import NotEnoughCpus
from sampan.kubelet.resource_managers.cpu_policy import (
    BadCpuState,
    CpuState,
    SmtAlignmentError,
    StaticPolicy,
    exclusive_cpus,
    reusable_after,
)
from sampan.kubelet.resource_managers.cpu_sets import NO_CPUS, CpuSet, cpus_text, parse_cpus
from sampan.kubelet.resource_managers.manager_settings import CPU_STATE, CPU_STATIC
from sampan.kubelet.resource_managers.numa import Hint, Hints
from sampan.kubelet.resource_managers.state_file import BadState, StateFile, read_state

MANAGER, FILE = CPU_STATE


class CpuManager:
    def __init__(
        self, policy: StaticPolicy, root_dir: str, *, tasks: Tasks, metrics: Metrics
    ) -> None:
        """Raises BadState."""
        self._policy, self._path = policy, f"{root_dir}/{FILE}"
        self._file = StateFile(self._path, CPU_STATIC, self._said, tasks)
        self._reusable: tuple[str, CpuSet] = ("", NO_CPUS)  # of the pod that is admitted
        self.pool_changed: Callable[[], None] = lambda: None
        self._state = self._restored()
        self._pinned, self._failed = (
            metrics.counter(f"kubelet_cpu_manager_pinning_{what}_total", text)
            for what, text in (
                ("requests", "The number of cpu core allocations which required pinning."),
                ("errors", "The number of cpu core allocations which required pinning failed."),
            )
        )
        self._aligned, self._unaligned = (
            metrics.counter(f"kubelet_container_aligned_compute_resources_{what}", text,
                            ("scope", "boundary"))
            for what, text in (
                ("count", "Cumulative number of aligned compute resources allocated to containers "
                          "by alignment type."),
                ("failure_count", "Cumulative number of failures to allocate aligned compute "
                                  "resources to containers by alignment type."),
            )
        )  # fmt: skip
        self._declare(metrics)

    def _restored(self) -> CpuState:
        written = read_state(MANAGER, self._path, CPU_STATIC)
        if written is None:
            return self._policy.initial()
        try:
            entries = written.get("entries") or {}
            state = CpuState(
                parse_cpus(written["defaultCpuSet"]),
                {
                    uid: {name: parse_cpus(text) for name, text in of_pod.items()}
                    for uid, of_pod in entries.items()
                },
            )
            self._policy.check(state)
        except (BadCpuState, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadState(MANAGER, self._path, error) from error
        return state

    def _declare(self, metrics: Metrics) -> None:
        metrics.gauge(
            "kubelet_cpu_manager_shared_pool_size_millicores",
            "The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.",
        ).read_from(lambda: {(): float(1000 * len(self._state.shared - self._policy.reserved))})
        metrics.gauge(
            "kubelet_cpu_manager_exclusive_cpu_allocation_count",
            "The total number of CPUs exclusively allocated to containers running on this node",
        ).read_from(lambda: {(): float(len(self._state.exclusive()))})
        metrics.gauge(
            "kubelet_cpu_manager_allocation_per_numa",
            "Number of CPUs allocated per NUMA node",
            ("numa_node",),
        ).read_from(self._per_numa)

    def _per_numa(self) -> dict[tuple[str, ...], float]:
        details, given = self._policy.topology.details, self._state.exclusive()
        return {
            (str(node),): float(len(given & details.in_numa(node)))
            for node in details.numa_nodes
            if given & details.in_numa(node)
        }

    # What others ask.

    def concerns(self, pod: Obj) -> bool:
        return any(exclusive_cpus(pod, item) for item in (*init_containers(pod), *containers(pod)))

    def cpus_of(self, uid: str, container: str) -> CpuSet:
        """Its own, or those of everybody."""
        own = self._state.of(uid, container)
        return self._state.shared if own is None else own

    def exclusive(self, uid: str, container: str) -> CpuSet:
        return self._state.of(uid, container) or NO_CPUS

    def is_pinned(self, uid: str) -> bool:
        """Has any container of the pod processors of its own?"""
        return bool(self._state.of_pod(uid))

    def allocatable(self) -> CpuSet:
        return self._policy.allocatable()

    def container_hints(self, pod: Obj, container: Obj) -> Hints:
        found = self._policy.container_hints(self._state, pod, container, self._reusable_of(pod))
        return {} if found is None else {"cpu": found}

    def pod_hints(self, pod: Obj) -> Hints:
        found = self._policy.pod_hints(self._state, pod, self._reusable_of(pod))
        return {} if found is None else {"cpu": found}

    def _reusable_of(self, pod: Obj) -> CpuSet:
        return self._reusable[1] if self._reusable[0] == uid_of(pod) else NO_CPUS

    async def allocate(self, pod: Obj, container: Obj, affinity: Hint) -> None:
        """Raises PodRefused."""
        if not exclusive_cpus(pod, container):
            return
        self._pinned.add()
        whole = self._policy.options.full_cores
        reusable = self._reusable_of(pod)
        try:
            state = self._policy.allocated(self._state, pod, container, affinity.mask, reusable)
        except (SmtAlignmentError, NotEnoughCpus) as error:
            self._failed.add()
            if whole:
                self._unaligned.add("container", "physical_cpu")
            if isinstance(error, SmtAlignmentError):
                raise PodRefused("SMTAlignmentError", f"{error}") from error
            raise unexpected(error) from error
        if whole:
            self._aligned.add("container", "physical_cpu")
        given = state.of(uid_of(pod), container["name"]) or NO_CPUS
        self._reusable = (uid_of(pod), reusable_after(pod, container, reusable, given))
        if state is not self._state:
            if len(self._policy.topology.details.uncores_of(given)) == 1:
                self._aligned.add("container", "uncore_cache")
            self._become(state)
            try:
                await self._file.stored()
            except OSError as error:
                raise unexpected(error) from error

    async def grants(self, pod: Obj, container: Obj) -> Grants | None:
        uid, name = uid_of(pod), container["name"]
        cpus = self.cpus_of(uid, name)
        if not cpus:
            return None
        return Grants(cpus=cpus_text(cpus), exclusive_cpus=bool(self.exclusive(uid, name)))

    def release(self, uid: str) -> None:
        if uid in self._state.assigned:
            self._become(self._state.without_pod(uid))
            self._file.store_soon()

    def keep_only(self, is_known: Callable[[str], bool]) -> None:
        """Of pods that went while the agent was away nothing is held."""
        for uid in [uid for uid in self._state.assigned if not is_known(uid)]:
            self.release(uid)

    def _become(self, state: CpuState) -> None:
        before, self._state = self._state, state
        if before.shared != state.shared:
            self.pool_changed()

    def _said(self) -> dict[str, Any]:
        return {
            "defaultCpuSet": cpus_text(self._state.shared),
            "entries": {
                uid: {name: cpus_text(cpus) for name, cpus in of_pod.items()}
                for uid, of_pod in self._state.assigned.items()
            },
        }
