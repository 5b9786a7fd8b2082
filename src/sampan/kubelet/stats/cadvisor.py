"""/metrics/cadvisor: the names that dashboards know, as far as the kernel's files give them.

Job: what the machine and its pods use → upstream's metrics.
Invariant: a figure that is not known is left out, never shown as 0 of something else.
"""

import os
from collections.abc import Iterable, Mapping

from sampan.api.objects import name_of, namespace_of
from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.runtime import Layer
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.stats.cgroup_bounds import Bounds
from sampan.kubelet.stats.node_stats import PodUsage
from sampan.kubelet.stats.usage import (
    NANO,
    Interface,
    Usage,
    read_interfaces,
    read_machine_usage,
)

_LABELS = ("container", "id", "image", "name", "namespace", "pod")
_INTERFACE = ("id", "image", "interface", "name", "namespace", "pod")
_DEVICE = ("container", "device", "id", "image", "name", "namespace", "pod")

_CPU = ("container", "cpu", "id", "image", "name", "namespace", "pod")

# name → help, field of Usage, divisor
_COUNTERS = {
    "container_cpu_user_seconds_total": (
        "Cumulative user cpu time consumed in seconds.", "cpu_user_nanoseconds", NANO),
    "container_cpu_system_seconds_total": (
        "Cumulative system cpu time consumed in seconds.", "cpu_system_nanoseconds", NANO),
    "container_cpu_cfs_periods_total": (
        "Number of elapsed enforcement period intervals.", "cpu_periods", 1),
    "container_cpu_cfs_throttled_periods_total": (
        "Number of throttled period intervals.", "cpu_throttled_periods", 1),
    "container_cpu_cfs_throttled_seconds_total": (
        "Total time duration the container has been throttled.", "cpu_throttled_nanoseconds",
        NANO),
    "container_memory_failcnt": (
        "Number of memory usage hits limits", "limit_failures", 1),
    "container_oom_events_total": (
        "Count of out of memory events observed for the container", "oom_kills", 1),
}  # fmt: skip
_GAUGES = {
    "container_memory_cache": ("Number of bytes of page cache memory.", "cache_bytes"),
    "container_memory_mapped_file": ("Size of memory mapped files in bytes.", "mapped_bytes"),
    "container_memory_max_usage_bytes": ("Maximum memory usage recorded in bytes", "peak_bytes"),
    "container_memory_rss": ("Size of RSS in bytes.", "rss_bytes"),
    "container_memory_swap": ("Container swap usage in bytes.", "swap_bytes"),
    "container_memory_usage_bytes": (
        "Current memory usage in bytes, including all memory regardless of when it was accessed",
        "memory_bytes"),
    "container_memory_working_set_bytes": ("Current working set in bytes.", "working_set_bytes"),
    "container_processes": (
        "Number of processes running inside the container.", "processes"),
}  # fmt: skip
# name → help, field of Bounds
_SPEC = {
    "container_spec_cpu_period": ("CPU period of the container.", "cpu_period"),
    "container_spec_cpu_quota": ("CPU quota of the container.", "cpu_quota"),
    "container_spec_cpu_shares": ("CPU share of the container.", "cpu_shares"),
    "container_spec_memory_limit_bytes": ("Memory limit for the container.", "memory_bytes"),
    "container_spec_memory_reservation_limit_bytes": (
        "Memory reservation limit for the container.", "reserved_bytes"),
    "container_spec_memory_swap_limit_bytes": (
        "Memory swap limit for the container.", "swap_bytes"),
}  # fmt: skip
_DISKS = {
    "container_fs_reads_bytes_total": ("Cumulative count of bytes read", "read_bytes"),
    "container_fs_reads_total": ("Cumulative count of reads completed", "reads"),
    "container_fs_writes_bytes_total": ("Cumulative count of bytes written", "written_bytes"),
    "container_fs_writes_total": ("Cumulative count of writes completed", "writes"),
}
_LAST_SEEN = "Last time a container was seen by the exporter"
_CONGESTION = {"cpu": "CPU", "memory": "memory", "io": "IO"}
_QUOTA_ONLY = frozenset(name for name in _COUNTERS if "_cfs_" in name)
_NETWORK = {
    "container_network_receive_bytes_total": ("bytes received", "received_bytes"),
    "container_network_receive_packets_total": ("packets received", "received_packets"),
    "container_network_receive_errors_total": ("errors encountered while receiving",
                                               "receive_errors"),
    "container_network_receive_packets_dropped_total": ("packets dropped while receiving",
                                                        "receive_dropped"),
    "container_network_transmit_bytes_total": ("bytes transmitted", "sent_bytes"),
    "container_network_transmit_packets_total": ("packets transmitted", "sent_packets"),
    "container_network_transmit_errors_total": ("errors encountered while transmitting",
                                                "send_errors"),
    "container_network_transmit_packets_dropped_total": ("packets dropped while transmitting",
                                                         "send_dropped"),
}  # fmt: skip


def render(
    machine: Machine, usages: Iterable[PodUsage], layers: Mapping[str, Layer], now: float
) -> str:
    metrics = Metrics()
    capacity = machine.capacity
    metrics.gauge("machine_cpu_cores", "Number of logical CPU cores.").set(
        capacity.cpu_milli / 1000
    )
    metrics.gauge("machine_memory_bytes", "Amount of memory installed on the machine.").set(
        capacity.memory_bytes
    )
    metrics.gauge("machine_swap_bytes", "Amount of swap memory available on the machine.").set(
        machine.swap_bytes
    )
    _show_machine(metrics, machine, now)
    for usage in usages:
        about = (namespace_of(usage.pod), name_of(usage.pod))
        labels: tuple[str, ...] = ("", usage.path, "", "", *about)
        _show(metrics, usage.usage, labels, usage.started_at, now)
        _show_bounds(metrics, usage.bounds, labels)
        for interface in usage.interfaces:
            _show_interface(metrics, interface, usage.path, about)
        for inside in usage.containers:
            status = inside.status
            labels = (status.name, inside.path, status.image, status.id, *about)
            _show(metrics, inside.usage, labels, status.started_at, now)
            _show_bounds(metrics, inside.bounds, labels)
            if status.id in layers:
                _show_layer(metrics, layers[status.id], labels)
    return metrics.render()


def _show_machine(metrics: Metrics, machine: Machine, now: float) -> None:
    """As the cgroup above all others."""
    labels, usage = ("", "/", "", "", "", ""), read_machine_usage()
    _show_cpu(metrics, usage, labels)
    for name in ("memory_rss", "memory_usage_bytes", "memory_working_set_bytes"):
        text, field = _GAUGES[f"container_{name}"]
        metrics.gauge(f"container_{name}", text, _LABELS).set(getattr(usage, field), *labels)
    bounds = Bounds(memory_bytes=machine.capacity.memory_bytes, swap_bytes=machine.swap_bytes)
    _show_bounds(metrics, bounds, labels)
    for interface in read_interfaces(os.getpid()):
        _show_interface(metrics, interface, "/", ("", ""))
    metrics.gauge("container_last_seen", _LAST_SEEN, _LABELS).set(int(now), *labels)


def _show_cpu(metrics: Metrics, usage: Usage, labels: tuple[str, ...]) -> None:
    text, container, *rest = "Cumulative cpu time consumed in seconds.", *labels
    metrics.counter("container_cpu_usage_seconds_total", text, _CPU).add(
        container, "total", *rest, by=usage.cpu_nanoseconds / NANO
    )


def _show_bounds(metrics: Metrics, bounds: Bounds, labels: tuple[str, ...]) -> None:
    for name, (text, field) in _SPEC.items():
        value = getattr(bounds, field)
        if value is not None and (value or field != "cpu_quota"):
            metrics.gauge(name, text, _LABELS).set(value, *labels)
    container, *rest = labels
    for disk in bounds.disks:
        for name, (text, field) in _DISKS.items():
            metrics.counter(name, text, _DEVICE).add(
                container, disk.device, *rest, by=getattr(disk, field)
            )
    for what, (waiting, stalled) in bounds.pressure.items():
        name, congestion = f"container_pressure_{what}", f"due to {_CONGESTION[what]} congestion."
        text = f"Total time duration tasks in the container have waited {congestion}"
        metrics.counter(f"{name}_waiting_seconds_total", text, _LABELS).add(*labels, by=waiting)
        text = f"Total time duration no tasks in the container could make progress {congestion}"
        metrics.counter(f"{name}_stalled_seconds_total", text, _LABELS).add(*labels, by=stalled)


def _show(
    metrics: Metrics, usage: Usage, labels: tuple[str, ...], started_at: float, now: float
) -> None:
    _show_cpu(metrics, usage, labels)
    for name, (text, field, divisor) in _COUNTERS.items():
        if name not in _QUOTA_ONLY or usage.cpu_periods:
            metrics.counter(name, text, _LABELS).add(*labels, by=getattr(usage, field) / divisor)
    for name, (text, field) in _GAUGES.items():
        metrics.gauge(name, text, _LABELS).set(getattr(usage, field), *labels)
    metrics.gauge(
        "container_start_time_seconds",
        "Start time of the container since unix epoch in seconds.",
        _LABELS,
    ).set(started_at, *labels)
    metrics.gauge("container_last_seen", _LAST_SEEN, _LABELS).set(int(now), *labels)


def _show_interface(
    metrics: Metrics, interface: Interface, path: str, about: tuple[str, str]
) -> None:
    labels = (path, "", interface.name, "", *about)
    for name, (what, field) in _NETWORK.items():
        text = f"Cumulative count of {what}"
        metrics.counter(name, text, _INTERFACE).add(*labels, by=getattr(interface, field))


def _show_layer(metrics: Metrics, layer: Layer, labels: tuple[str, ...]) -> None:
    container, *rest = labels
    device = (container, "", *rest)
    metrics.gauge(
        "container_fs_usage_bytes",
        "Number of bytes that are consumed by the container on this filesystem.",
        _DEVICE,
    ).set(layer.used_bytes, *device)
