"""/stats/summary: what the node and its pods use, with their disks and networks.

Job: figures of the kernel, of directories and of the runtime → upstream's Summary.
Invariant: nothing is measured while nobody asks; what cannot be measured is left out.
Owner: Kubelet builds it; the node's HTTP server asks.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sampan.api.objects import Obj, name_of, namespace_of, time_text, uid_of
from sampan.core.bounded import Recent
from sampan.core.log import get_logger
from sampan.kubelet.contracts.runtime import Layer, Runtime, RuntimeFailure
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.stats.local_storage import Taken, on_disk
from sampan.kubelet.stats.node_stats import ContainerUsage, NodeStats, PodUsage
from sampan.kubelet.stats.usage import Interface, Usage, read_interfaces, read_machine_usage
from sampan.kubelet.stats.volume_figures import VolumeStatsReader

_MOST_RATES = 10_000

log = get_logger(__name__)


class StatsSummary:
    def __init__(
        self,
        *,
        node_name: str,
        stats: NodeStats,
        runtime: Runtime,
        machine: Machine,
        directories: tuple[str, str, str],
        volumes: VolumeStatsReader,
    ) -> None:
        """`directories`: of the node agent, of the pods' logs, of the images."""
        self._node_name, self._stats, self._runtime = node_name, stats, runtime
        self._machine, self._volumes, self._clock = machine, volumes, volumes.clock
        self._root_dir, self._log_dir, self._image_dir = directories
        # What → when, nanoseconds of cpu.
        self._before: Recent[str, tuple[float, int]] = Recent(_MOST_RATES)

    async def layers(self) -> Mapping[str, Layer]:
        try:
            return await self._runtime.layers()
        except RuntimeFailure as error:
            log.debug("writable layers were not measured", error=error)
            return {}

    async def summary(self) -> Obj:
        usages, layers = list(self._stats.usages()), await self.layers()
        now = time_text(self._clock.now())
        pods = []
        for usage in usages:
            taken = await asyncio.to_thread(on_disk, usage.pod, self._root_dir, self._log_dir)
            pod = self._pod(usage, layers, taken, now)
            space = namespace_of(usage.pod)
            pod["volume"] = [item.shown(space, now) for item in await self._volumes.of(usage.pod)]
            pods.append(pod)
        return {"node": self._node(now), "pods": pods}

    def _node(self, now: str) -> Obj:
        usage = read_machine_usage()
        images = _disk(self._image_dir, now)
        node: Obj = {
            "nodeName": self._node_name,
            "cpu": self._cpu("node", usage, now),
            "memory": _memory(usage, now, self._machine.capacity.memory_bytes),
            "fs": _disk(self._root_dir, now),
            "runtime": {"imageFs": images, "containerFs": images},
            "rlimit": {"time": now, **_processes()},
        }
        return node | _network(read_interfaces(os.getpid()), now)

    def _pod(
        self,
        one: PodUsage,
        layers: Mapping[str, Layer],
        taken: tuple[dict[str, Taken], dict[str, Taken]],
        now: str,
    ) -> Obj:
        uid, (volumes, logs) = uid_of(one.pod), taken
        disk = _disk(self._root_dir, now)
        written = [layers[inside.status.id] for inside in one.containers
                   if inside.status.id in layers]  # fmt: skip
        used = sum(part.size for part in (*volumes.values(), *logs.values()))
        files = sum(part.files for part in (*volumes.values(), *logs.values()))
        pod: Obj = {
            "podRef": {"name": name_of(one.pod), "namespace": namespace_of(one.pod), "uid": uid},
            "startTime": time_text(one.started_at),
            "cpu": self._cpu(uid, one.usage, now),
            "memory": _memory(one.usage, now),
            "process_stats": {"process_count": one.usage.processes},
            "ephemeral-storage": _using(
                disk,
                used + sum(layer.used_bytes for layer in written),
                files + sum(layer.inodes for layer in written),
            ),
            "containers": [
                self._container(inside, layers, logs, disk, now) for inside in one.containers
            ],
        }
        return pod | _network(one.interfaces, now)

    def _container(
        self,
        inside: ContainerUsage,
        layers: Mapping[str, Layer],
        logs: Mapping[str, Taken],
        disk: Obj,
        now: str,
    ) -> Obj:
        status = inside.status
        shown: Obj = {
            "name": status.name,
            "startTime": time_text(status.started_at),
            "cpu": self._cpu(status.id, inside.usage, now),
            "memory": _memory(inside.usage, now),
            "swap": {"time": now, "swapUsageBytes": inside.usage.swap_bytes},
        }
        if status.id in layers:
            layer = layers[status.id]
            shown["rootfs"] = _using(disk, layer.used_bytes, layer.inodes)
        if status.name in logs:
            shown["logs"] = _using(disk, logs[status.name].size, logs[status.name].files)
        return shown

    def _cpu(self, what: str, usage: Usage, now: str) -> Obj:
        """The rate since somebody last asked; none the first time."""
        moment = self._clock.monotonic()
        before = self._before.get(what)
        self._before[what] = (moment, usage.cpu_nanoseconds)
        shown: Obj = {"time": now, "usageCoreNanoSeconds": usage.cpu_nanoseconds}
        if before is not None and moment > before[0]:
            used = max(0, usage.cpu_nanoseconds - before[1])
            shown["usageNanoCores"] = int(used / (moment - before[0]))
        return shown


def _disk(directory: str, now: str) -> Obj:
    """Of the file system that a directory is on, or will be on."""
    there = Path(directory)
    while not there.exists() and there != there.parent:
        there = there.parent
    found = os.statvfs(there)
    return {
        "time": now,
        "availableBytes": found.f_bavail * found.f_frsize,
        "capacityBytes": found.f_blocks * found.f_frsize,
        "usedBytes": (found.f_blocks - found.f_bfree) * found.f_frsize,
        "inodesFree": found.f_ffree,
        "inodes": found.f_files,
        "inodesUsed": found.f_files - found.f_ffree,
    }


def _using(disk: Obj, used_bytes: int, inodes: int) -> Obj:
    return {**disk, "usedBytes": used_bytes, "inodesUsed": inodes}


def _network(interfaces: Sequence[Interface], now: str) -> Obj:
    if not interfaces:
        return {}
    shown = [
        {
            "name": interface.name,
            "rxBytes": interface.received_bytes,
            "rxErrors": interface.receive_errors,
            "txBytes": interface.sent_bytes,
            "txErrors": interface.send_errors,
        }
        for interface in interfaces
    ]
    default = next((item for item in shown if item["name"] == "eth0"), shown[0])
    return {"network": {"time": now, **default, "interfaces": shown}}


def _processes() -> Obj:
    try:
        running = Path("/proc/loadavg").read_text().split()[3].partition("/")[2]
        most = Path("/proc/sys/kernel/pid_max").read_text()
        return {"maxpid": int(most), "curproc": int(running)}
    except (OSError, ValueError, IndexError):
        return {}


def _memory(usage: Usage, now: str, capacity_bytes: int = 0) -> Obj:
    shown: Obj = {
        "time": now,
        "usageBytes": usage.memory_bytes,
        "workingSetBytes": usage.working_set_bytes,
        "rssBytes": usage.rss_bytes,
        "pageFaults": usage.page_faults,
        "majorPageFaults": usage.major_page_faults,
    }
    if capacity_bytes:
        shown["availableBytes"] = max(0, capacity_bytes - usage.working_set_bytes)
    return shown
