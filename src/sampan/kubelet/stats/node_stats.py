"""What the node and its pods use, in the forms that others ask for.

Job: usage of pods and containers, and /metrics/resource, made from the kernel's figures at the
    moment they are asked for.
Invariant: nothing is measured while nobody asks.
Owner: Kubelet builds it; the node's HTTP server asks.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.api.rules.pods import is_host_network
from sampan.core.fast_dataclass import dataclass, replace
from sampan.core.metrics import Metrics
from sampan.kubelet.cgroups.pod_cgroups import Cgroups
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ContainerStatus,
    ObservedPod,
    SandboxStatus,
)
from sampan.kubelet.stats.cgroup_bounds import NO_BOUNDS, Bounds, read_bounds
from sampan.kubelet.stats.usage import (
    NANO,
    Interface,
    Usage,
    first_process,
    read_interfaces,
    read_machine_usage,
    read_usage,
)

_POD = ("namespace", "pod")
_CONTAINER = ("container", *_POD)


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    status: ContainerStatus
    usage: Usage
    path: str = ""
    bounds: Bounds = NO_BOUNDS


@dataclass(frozen=True, slots=True)
class PodUsage:
    pod: Obj
    usage: Usage
    path: str  # inside of its hierarchy
    started_at: float
    containers: tuple[ContainerUsage, ...]
    interfaces: tuple[Interface, ...] = ()  # none in the node's own network
    bounds: Bounds = NO_BOUNDS  # where they were asked for


class NodeStats:
    def __init__(
        self,
        *,
        cgroups: Cgroups | None,
        pods: Callable[[], list[Obj]],
        observed: Callable[[str], ObservedPod | None],
    ) -> None:
        self._cgroups, self._pods, self._observed = cgroups, pods, observed

    def usages(self) -> Iterator[PodUsage]:
        """Of the pods that run."""
        for pod in self._pods():
            observed = self._observed(uid_of(pod))
            if observed is not None and any(sandbox.ready for sandbox in observed.sandboxes):
                yield self.usage_of(pod, observed)

    def bounded_usages(self) -> Iterator[PodUsage]:
        """With what each cgroup may use, and what it waited for."""
        for one in self.usages():
            uid = uid_of(one.pod)
            paths = [self._path(uid, item) for item in ("cpu", "memory", "blkio")]
            containers = tuple(
                replace(
                    item,
                    bounds=read_bounds(
                        *(path and path / self._folder(item.status.id) for path in paths)
                    ),
                )
                for item in one.containers
            )
            yield replace(one, containers=containers, bounds=read_bounds(*paths))

    def usage_of(self, pod: Obj, observed: ObservedPod) -> PodUsage:
        uid = uid_of(pod)
        paths = [self._path(uid, item) for item in ("cpuacct", "memory", "pids", "cpu")]
        memory, place = paths[1], "" if self._cgroups is None else self._cgroups.place_of(uid)
        containers = tuple(
            ContainerUsage(
                container,
                read_usage(*(path and path / self._folder(container.id) for path in paths)),
                f"{place}/{self._folder(container.id)}",
            )
            for container in observed.containers
            if container.state is ContainerState.RUNNING
        )
        ready = [sandbox for sandbox in observed.sandboxes if sandbox.ready]
        inside = self._process_inside(memory, [*ready, *(item.status for item in containers)])
        return PodUsage(
            pod,
            read_usage(*paths),
            place,
            min((item.created_at for item in ready), default=0.0),
            containers,
            read_interfaces(inside) if inside and not is_host_network(pod) else (),
        )

    def _process_inside(
        self, memory: Path | None, holders: Sequence[SandboxStatus | ContainerStatus]
    ) -> int:
        """The sandbox's, or, where it has none, a container's: all share the pod's network."""
        folders = (memory / self._folder(holder.id) for holder in holders) if memory else ()
        return next(filter(None, map(first_process, folders)), 0)

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
        for usage in self.usages():
            about = (namespace_of(usage.pod), name_of(usage.pod))
            pod_cpu.add(*about, by=usage.usage.cpu_nanoseconds / NANO)
            pod_memory.set(usage.usage.working_set_bytes, *about)
            for inside in usage.containers:
                labels = (inside.status.name, *about)
                cpu.add(*labels, by=inside.usage.cpu_nanoseconds / NANO)
                memory.set(inside.usage.working_set_bytes, *labels)
                start.set(inside.status.started_at, *labels)
        return metrics.render()

    def _folder(self, container_id: str) -> str:
        return "" if self._cgroups is None else self._cgroups.container_folder(container_id)

    def _path(self, uid: str, controller: str) -> Path | None:
        return None if self._cgroups is None else self._cgroups.path_of(uid, controller)
