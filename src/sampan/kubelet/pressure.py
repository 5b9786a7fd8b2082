"""Watching what the node is short of, and evicting pods when it has to be.

Job: measure memory, disk and process ids now and then; keep the node's pressure conditions true;
    free images before pods; evict one pod at a time; end pods that exceed their own storage limits.
Invariant: what is decided is decided in eviction.py; here it is measured and done.
Owner: Kubelet runs it on real nodes.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from sampan.api.objects import Obj, key_of, name_of, namespace_of, uid_of
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.kubelet import eviction
from sampan.kubelet.eviction import Available, Candidate, EvictionSettings, Pressure
from sampan.kubelet.image_garbage import ImageGarbage
from sampan.kubelet.node_stats import NodeStats, PodUsage
from sampan.kubelet.recorder import PodEvents
from sampan.kubelet.runtime import RuntimeFailure
from sampan.kubelet.status import Verdict
from sampan.kubelet.translate import pod_directory

log = get_logger(__name__)

Evict = Callable[[str, float, Verdict], None]  # uid, grace, why
Measure = Callable[[str, str], Mapping[str, Available]]


class PressureWatch:
    def __init__(
        self,
        *,
        settings: EvictionSettings,
        stats: NodeStats,
        images: ImageGarbage,
        evict: Evict,
        events: PodEvents,
        changed: Callable[[frozenset[str]], None],
        directories: tuple[str, str],
        log_dir: str,
        clock: Clock,
        measure: Measure | None = None,
    ) -> None:
        """`directories`: of pods, and of images. `changed`: the conditions are others now."""
        self._settings, self._stats, self._images = settings, stats, images
        self._evict, self._events, self._changed = evict, events, changed
        self._directories, self._log_dir, self._clock = directories, log_dir, clock
        self._measure = measure or measured
        self._pressure = Pressure()
        self._conditions: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(self._settings.period_seconds)
            await self.look()

    async def look(self) -> None:
        now = self._clock.now()
        there = self._measure(*self._directories)
        self._pressure, due = eviction.looked(self._pressure, self._settings, there, now)
        conditions = self._pressure.conditions(now, self._settings.transition_seconds)
        if conditions != self._conditions:
            log.info("pressure on the node", conditions=sorted(conditions))
            self._conditions = conditions
            self._changed(conditions)
        await self._check_storage()
        if due is None:
            return
        if eviction.CONDITIONS[due.signal] == "DiskPressure" and await self._free_images(due):
            return
        self._evict_for(due, there[due.signal])

    async def _free_images(self, threshold: eviction.Threshold) -> bool:
        """Did that help?"""
        try:
            await self._images.collect(all_unused=True)
        except RuntimeFailure as error:
            log.info("images were not removed", error=error)
        there = self._measure(*self._directories)[threshold.signal]
        return there.amount >= eviction.limit_of(threshold, there)

    def _evict_for(self, threshold: eviction.Threshold, there: Available) -> None:
        candidates = [self._candidate(one) for one in self._stats.usages()]
        chosen = eviction.chosen_pod(candidates, threshold)
        if chosen is None:
            log.warning("nothing to evict", signal=threshold.signal)
            return
        soft = threshold.grace_seconds > 0
        grace = self._settings.max_pod_grace_seconds if soft else 0.0
        self._end(chosen.pod, eviction.message(threshold, there, chosen), grace)

    def _end(self, pod: Obj, message: str, grace_seconds: float) -> None:
        log.info("evicting a pod", pod=key_of(pod), why=message)
        self._events.warning(pod, "Evicted", message)
        self._evict(uid_of(pod), grace_seconds, Verdict("Evicted", message))

    def _candidate(self, one: PodUsage) -> Candidate:
        memory = {inside.status.name: inside.usage.working_set_bytes for inside in one.containers}
        usage = {"memory": one.usage.working_set_bytes, "pids": one.usage.processes}
        if "DiskPressure" in self._conditions:
            usage["ephemeral-storage"] = sum(self._volumes(one.pod).values()) + sum(
                self._logs(one.pod).values()
            )
        return Candidate(one.pod, usage, memory)

    async def _check_storage(self) -> None:
        limited = [one.pod for one in self._stats.usages() if eviction.has_storage_limits(one.pod)]
        for pod in limited:
            volumes = await asyncio.to_thread(self._volumes, pod)
            logs = await asyncio.to_thread(self._logs, pod)
            why = eviction.storage_excess(pod, volumes, logs)
            if why:
                self._end(pod, why, 0.0)

    def _volumes(self, pod: Obj) -> dict[str, int]:
        base = Path(pod_directory(uid_of(pod), self._directories[0]))
        return {
            path.name: size_of(path)
            for path in (base / "volumes" / "kubernetes.io~empty-dir").glob("*")
        }

    def _logs(self, pod: Obj) -> dict[str, int]:
        folder = f"{namespace_of(pod)}_{name_of(pod)}_{uid_of(pod)}"
        return {path.name: size_of(path) for path in Path(self._log_dir, folder).glob("*")}


def size_of(directory: Path) -> int:
    """What is on the disk, without following links."""
    total = 0
    for root, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
            except OSError:
                continue  # it went away while we looked
    return total


def measured(pod_directory_root: str, image_directory: str) -> dict[str, Available]:
    memory = {
        line.split(":")[0]: int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
    }
    disk, images = _disk(pod_directory_root), _disk(image_directory)
    there = {
        eviction.MEMORY: Available(memory["MemAvailable"], memory["MemTotal"]),
        eviction.NODEFS: Available(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize),
        eviction.IMAGEFS: Available(
            images.f_bavail * images.f_frsize, images.f_blocks * images.f_frsize
        ),
    }
    if disk.f_files:
        there[eviction.INODES] = Available(disk.f_favail, disk.f_files)
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    running = int(Path("/proc/loadavg").read_text().split()[3].split("/")[1])
    there[eviction.PIDS] = Available(most - running, most)
    return there


def _disk(directory: str) -> os.statvfs_result:
    path = Path(directory)
    while not path.exists():
        path = path.parent
    return os.statvfs(path)
