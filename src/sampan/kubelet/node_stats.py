"""What the node and its pods use, in the forms that others ask for.

Job: /metrics/resource, /metrics/cadvisor and /stats/summary, made from the kernel's figures at the
    moment they are asked for.
Invariant: nothing is measured while nobody asks.
Owner: Kubelet builds it; the node's HTTP server asks.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from sampan.api.objects import Obj, name_of, namespace_of, time_text, uid_of
from sampan.core.clock import Clock
from sampan.core.metrics import Metrics
from sampan.core.records import dataclass
from sampan.kubelet.cgroups import Cgroups
from sampan.kubelet.node_machine import Machine
from sampan.kubelet.runtime import ContainerState, ContainerStatus, ObservedPod
from sampan.kubelet.usage import NANO, Usage, read_machine_usage, read_usage

_POD = ("namespace", "pod")
_CONTAINER = ("container", *_POD)
_CADVISOR = ("container", "id", "image", "name", *_POD)


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    status: ContainerStatus
    usage: Usage


@dataclass(frozen=True, slots=True)
class PodUsage:
    pod: Obj
    usage: Usage
    path: str  # inside of its hierarchy
    started_at: float
    containers: tuple[ContainerUsage, ...]


class NodeStats:
    def __init__(
        self,
        *,
        node_name: str,
        cgroups: Cgroups | None,
        pods: Callable[[], list[Obj]],
        observed: Callable[[str], ObservedPod | None],
        machine: Machine,
        root_dir: str,
        clock: Clock,
    ) -> None:
        self._node_name, self._cgroups, self._pods = node_name, cgroups, pods
        self._observed, self._machine = observed, machine
        self._root_dir, self._clock = root_dir, clock
        self._before: dict[str, tuple[float, int]] = {}  # what → when, nanoseconds of cpu

    def usages(self) -> Iterator[PodUsage]:
        """Of the pods that run."""
        for pod in self._pods():
            observed = self._observed(uid_of(pod))
            if observed is not None and any(one.ready for one in observed.sandboxes):
                yield self.usage_of(pod, observed)

    def usage_of(self, pod: Obj, observed: ObservedPod) -> PodUsage:
        uid = uid_of(pod)
        cpu, memory, pids = (self._path(uid, one) for one in ("cpuacct", "memory", "pids"))
        containers = tuple(
            ContainerUsage(
                one,
                read_usage(
                    *(path and path / self._folder(one.id) for path in (cpu, memory, pids)),
                ),
            )
            for one in observed.containers
            if one.state is ContainerState.RUNNING
        )
        started = min((one.created_at for one in observed.sandboxes if one.ready), default=0.0)
        return PodUsage(pod, read_usage(cpu, memory, pids), str(memory or ""), started, containers)

    def resource_metrics(self) -> str:
        """As upstream's /metrics/resource."""
        metrics, machine = Metrics(), read_machine_usage()
        seconds = "Cumulative cpu time consumed by the {} in core-seconds"
        size = "Current working set of the {} in bytes"
        node_cpu = metrics.counter("node_cpu_usage_seconds_total", seconds.format("node"))
        node_memory = metrics.gauge("node_memory_working_set_bytes", size.format("node"))
        pod_cpu = metrics.counter("pod_cpu_usage_seconds_total", seconds.format("pod"), _POD)
        pod_memory = metrics.gauge("pod_memory_working_set_bytes", size.format("pod"), _POD)
        cpu = metrics.counter(
            "container_cpu_usage_seconds_total", seconds.format("container"), _CONTAINER
        )
        memory = metrics.gauge(
            "container_memory_working_set_bytes", size.format("container"), _CONTAINER
        )
        start = metrics.gauge(
            "container_start_time_seconds",
            "Start time of the container since unix epoch in seconds",
            _CONTAINER,
        )
        metrics.gauge("resource_scrape_error", "1 if there was an error, 0 otherwise").set(0)
        node_cpu.add(by=machine.cpu_nanoseconds / NANO)
        node_memory.set(machine.working_set_bytes)
        for one in self.usages():
            about = (namespace_of(one.pod), name_of(one.pod))
            pod_cpu.add(*about, by=one.usage.cpu_nanoseconds / NANO)
            pod_memory.set(one.usage.working_set_bytes, *about)
            for inside in one.containers:
                labels = (inside.status.name, *about)
                cpu.add(*labels, by=inside.usage.cpu_nanoseconds / NANO)
                memory.set(inside.usage.working_set_bytes, *labels)
                start.set(inside.status.started_at, *labels)
        return metrics.render()

    def cadvisor(self) -> str:
        """The names that dashboards know, as far as the kernel's files give them."""
        metrics = Metrics()
        capacity = self._machine.capacity
        metrics.gauge("machine_cpu_cores", "Number of logical CPU cores.").set(
            capacity.cpu_milli / 1000
        )
        metrics.gauge("machine_memory_bytes", "Amount of memory installed on the machine.").set(
            capacity.memory_bytes
        )
        for one in self.usages():
            about = (namespace_of(one.pod), name_of(one.pod))
            _show(metrics, one.usage, ("", one.path, "", "", *about), one.started_at)
            for inside in one.containers:
                status = inside.status
                labels = (status.name, f"{one.path}/{status.id}", status.image, status.id, *about)
                _show(metrics, inside.usage, labels, status.started_at)
        return metrics.render()

    def summary(self) -> Obj:
        """As upstream's /stats/summary."""
        machine = read_machine_usage()
        now = time_text(self._clock.now())
        disk = shutil.disk_usage(self._root_dir if Path(self._root_dir).exists() else "/")
        node: Obj = {
            "nodeName": self._node_name,
            "cpu": self._cpu("node", machine, now),
            "memory": _memory(machine, now, self._machine.capacity.memory_bytes),
            "fs": {
                "time": now,
                "availableBytes": disk.free,
                "capacityBytes": disk.total,
                "usedBytes": disk.used,
            },
        }
        return {"node": node, "pods": [self._summary(one, now) for one in self.usages()]}

    def _summary(self, one: PodUsage, now: str) -> Obj:
        uid = uid_of(one.pod)
        return {
            "podRef": {"name": name_of(one.pod), "namespace": namespace_of(one.pod), "uid": uid},
            "startTime": time_text(one.started_at),
            "cpu": self._cpu(uid, one.usage, now),
            "memory": _memory(one.usage, now),
            "process_stats": {"process_count": one.usage.processes},
            "containers": [
                {
                    "name": inside.status.name,
                    "startTime": time_text(inside.status.started_at),
                    "cpu": self._cpu(inside.status.id, inside.usage, now),
                    "memory": _memory(inside.usage, now),
                }
                for inside in one.containers
            ],
        }

    def _cpu(self, what: str, usage: Usage, now: str) -> Obj:
        """The rate since somebody last asked; none the first time."""
        moment = self._clock.monotonic()
        before = self._before.pop(what, None)
        self._before[what] = (moment, usage.cpu_nanoseconds)
        if len(self._before) > 10_000:
            del self._before[next(iter(self._before))]
        shown: Obj = {"time": now, "usageCoreNanoSeconds": usage.cpu_nanoseconds}
        if before is not None and moment > before[0]:
            used = max(0, usage.cpu_nanoseconds - before[1])
            shown["usageNanoCores"] = int(used / (moment - before[0]))
        return shown

    def _folder(self, container_id: str) -> str:
        return "" if self._cgroups is None else self._cgroups.container_folder(container_id)

    def _path(self, uid: str, controller: str) -> Path | None:
        return None if self._cgroups is None else self._cgroups.path_of(uid, controller)


def _show(metrics: Metrics, usage: Usage, labels: tuple[str, ...], started_at: float) -> None:
    def gauge(name: str, help_text: str, value: float) -> None:
        metrics.gauge(name, help_text, _CADVISOR).set(value, *labels)

    metrics.counter(
        "container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", _CADVISOR
    ).add(*labels, by=usage.cpu_nanoseconds / NANO)
    gauge(
        "container_memory_usage_bytes",
        "Current memory usage in bytes, including all memory regardless of when it was accessed",
        usage.memory_bytes,
    )
    gauge("container_memory_working_set_bytes", "Current working set in bytes.",
          usage.working_set_bytes)  # fmt: skip
    gauge("container_memory_rss", "Size of RSS in bytes.", usage.rss_bytes)
    gauge("container_processes", "Number of processes running inside the container.",
          usage.processes)  # fmt: skip
    gauge("container_start_time_seconds", "Start time of the container since unix epoch in "
          "seconds.", started_at)  # fmt: skip


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
