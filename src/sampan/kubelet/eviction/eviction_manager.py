"""EvictionManager: measures eviction signals, reclaims images and containers, evicts pods.

Job: measure memory, disk and process ids now and then; keep the node's pressure conditions true;
    free images and dead containers before pods; end pods that exceed their own storage limits.
Invariant: what is decided is decided in eviction_rules.py and storage_limits.py; here it is done.
Invariant: one pod at a time: the next goes only when the last one is gone, or had its time.
Owner: Kubelet runs it on real nodes.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from sampan.api.objects import Obj, key_of, uid_of
from sampan.api.rules.pods import is_critical, is_terminal
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.runtime import ContainerState, RuntimeFailure
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.eviction import eviction_rules
from sampan.kubelet.eviction.eviction_rules import Available, Candidate, Pressure
from sampan.kubelet.eviction.storage_limits import LocalStorage, has_storage_limits, storage_excess
from sampan.kubelet.images.image_gc import ImageGCManager
from sampan.kubelet.stats import local_storage
from sampan.kubelet.stats.node_stats import NodeStats, PodUsage
from sampan.kubelet.status.recorder import PodEvents

log = get_logger(__name__)

GONE_SECONDS = 30.0  # as upstream: how long the next eviction waits for the end of the last one

Evict = Callable[[str, float, Verdict], None]  # uid, grace, why
Measure = Callable[[str, str], Mapping[str, Available]]


@dataclass(frozen=True, slots=True)
class EvictablePods:
    """The pods of the node. `is_over`: nothing of that pod runs any more."""

    all: Callable[[], list[Obj]]
    is_over: Callable[[str], bool]
    evict: Evict
    events: PodEvents


@dataclass(frozen=True, slots=True)
class NodeCallbacks:
    """`warn`: an event about the node. `changed`: its pressure conditions are others now."""

    warn: Callable[[str, str], None]
    changed: Callable[[frozenset[str]], None]


class EvictionManager:
    def __init__(
        self,
        context: NodeContext,
        *,
        stats: NodeStats,
        images: ImageGCManager,
        pods: EvictablePods,
        node: NodeCallbacks,
        measure: Measure | None = None,
    ) -> None:
        settings = context.settings
        self._settings, self._stats, self._images = settings.eviction, stats, images
        self._runtime, self._clock = context.runtime, context.clock
        self._pods, self._is_over, self._evict = pods.all, pods.is_over, pods.evict
        self._events, self._warn, self._changed = pods.events, node.warn, node.changed
        # Of pods, and of images.
        self._directories = (settings.root_dir, settings.image_directory or settings.root_dir)
        self._log_dir, self._measure = settings.log_dir, measure or measured
        self._pressure = Pressure()
        self._conditions: frozenset[str] = frozenset()
        self._stuck = ""  # the signal for which there was nobody to evict
        self._going: dict[str, float] = {}  # uid of an evicted pod → until when we wait for it
        self._evictions = context.metrics.counter(
            "kubelet_evictions",
            "Cumulative number of pod evictions by eviction signal",
            ("eviction_signal",),
        )

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(self._settings.period_seconds)
            await self.look()

    async def look(self) -> None:
        now = self._clock.now()
        there = self._measure(*self._directories)
        self._pressure, due = eviction_rules.observe(self._pressure, self._settings, there, now)
        conditions = self._pressure.conditions(now, self._settings.transition_seconds)
        if conditions != self._conditions:
            log.info("eviction threshold met", conditions=sorted(conditions))
            self._conditions = conditions
            self._changed(conditions)
        found = {uid_of(usage.pod): usage for usage in self._stats.usages()}
        usages = {uid: match_ for uid, match_ in found.items() if not self._is_over(uid)}
        self._going = {uid: until for uid, until in self._going.items() if uid in usages}
        if await self._check_storage(usages) or due is None or self._waits(now):
            return
        self._warn("EvictionThresholdMet", f"Attempting to reclaim {_resource(due)}")
        if eviction_rules.CONDITIONS[due.signal] == "DiskPressure" and await self._free_disk(due):
            return
        await self._evict_for(due, there[due.signal], list(usages.values()))

    def _waits(self, now: float) -> bool:
        return any(now < until for until in self._going.values())

    # What can be freed without a pod's harm.

    async def _free_disk(self, threshold: eviction_rules.Threshold) -> bool:
        """Did that help?"""
        try:
            await self._remove_dead_containers()
            await self._images.collect(all_unused=True)
        except RuntimeFailure as error:
            log.info("container or image garbage collection failed", error=error)
        there = self._measure(*self._directories)[threshold.signal]
        return there.amount >= eviction_rules.goal_of(threshold, there)

    async def _remove_dead_containers(self) -> None:
        """Of pods that are over: their logs and layers go, their status stays."""
        over = {uid_of(pod) for pod in self._pods() if is_terminal(pod)}
        for observed in await self._runtime.pods():
            if observed.uid in over and not any(sandbox.ready for sandbox in observed.sandboxes):
                for container in observed.containers:
                    if container.state is ContainerState.EXITED:
                        await self._runtime.remove_container(container.id)

    # Who has to go.

    async def _evict_for(
        self, threshold: eviction_rules.Threshold, there: Available, usages: list[PodUsage]
    ) -> None:
        with_disk = eviction_rules.CONDITIONS[threshold.signal] == "DiskPressure"
        candidates = [
            await self._candidate(usage, with_disk)
            for usage in usages
            if uid_of(usage.pod) not in self._going
        ]
        chosen = eviction_rules.chosen_pod(candidates, threshold)
        if chosen is None:
            if self._stuck != threshold.signal:  # once, not at each look
                log.warning(
                    "eviction threshold met, but there are no pods to evict",
                    signal=threshold.signal,
                )
            self._stuck = threshold.signal
            return
        self._stuck = ""
        grace = eviction_rules.grace_of(chosen.pod, threshold, self._settings)
        text = eviction_rules.message(threshold, there, chosen)
        self._end(chosen.pod, threshold.signal, grace, Verdict("Evicted", text, disruption=text))

    async def _candidate(self, one: PodUsage, with_disk: bool) -> Candidate:
        memory = {inside.status.name: inside.usage.working_set_bytes for inside in one.containers}
        usage = {"memory": one.usage.working_set_bytes, "pids": one.usage.processes}
        disk = await self._storage(one) if with_disk else LocalStorage()
        usage |= {"ephemeral-storage": disk.on_disk(one.pod), "inodes": disk.inodes}
        by_container = {"memory": memory, "ephemeral-storage": disk.containers}
        return Candidate(one.pod, usage, by_container)

    async def _check_storage(self, usages: Mapping[str, PodUsage]) -> bool:
        """Has a pod to go for its own limits?"""
        evicted = False
        for uid, usage in usages.items():
            pod = usage.pod
            if uid in self._going or is_critical(pod) or not has_storage_limits(pod):
                continue
            excess = storage_excess(pod, await self._storage(usage))
            if excess is not None:
                # As upstream: one that exceeds its own limits is nobody's DisruptionTarget.
                self._end(pod, excess.signal, 0.0, Verdict("Evicted", excess.message))
                evicted = True
        return evicted

    async def _storage(self, one: PodUsage) -> LocalStorage:
        root_dir = self._directories[0]
        return await local_storage.measure(self._runtime, one, root_dir, self._log_dir)

    def _end(self, pod: Obj, signal: str, grace_seconds: float, verdict: Verdict) -> None:
        log.info("evicting a pod", pod=key_of(pod), why=verdict.message)
        self._evictions.add(signal)
        self._going[uid_of(pod)] = self._clock.now() + GONE_SECONDS
        self._events.warning(pod, "Evicted", verdict.message)
        self._evict(uid_of(pod), grace_seconds, verdict)


def _resource(threshold: eviction_rules.Threshold) -> str:
    return eviction_rules.RESOURCES[threshold.signal]


def measured(pod_directory_root: str, image_directory: str) -> dict[str, Available]:
    memory = {
        line.split(":")[0]: int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
    }
    there = {eviction_rules.MEMORY: Available(memory["MemAvailable"], memory["MemTotal"])}
    for directory, size, inodes in (
        (pod_directory_root, eviction_rules.NODEFS, eviction_rules.INODES),
        (image_directory, eviction_rules.IMAGEFS, eviction_rules.IMAGE_INODES),
    ):
        disk = _disk(directory)
        there[size] = Available(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)
        if disk.f_files:  # some file systems have no such bound
            there[inodes] = Available(disk.f_favail, disk.f_files)
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    running = int(Path("/proc/loadavg").read_text().split()[3].split("/")[1])
    there[eviction_rules.PIDS] = Available(most - running, most)
    return there


def _disk(directory: str) -> os.statvfs_result:
    path = Path(directory)
    while not path.exists():
        path = path.parent
    return os.statvfs(path)
