"""What a process costs, and which version it is, under the names that Prometheus' libraries use.

Job: processor time, memory, open files and start of this process, read when somebody asks. What
    the kernel tells only in /proc is not named where there is none.
"""

import os
import resource
from collections.abc import Callable, Mapping

from sampan.core.metrics import Metrics

_PAGE_BYTES = resource.getpagesize()
_TICKS = os.sysconf("SC_CLK_TCK")
_START_FIELD = 19  # of /proc/self/stat, counted after the name in parentheses


def add_process_metrics(metrics: Metrics, build: Mapping[str, str]) -> None:
    """`build`: the labels of kubernetes_build_info."""
    metrics.read_counter(
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
        lambda: {(): sum(resource.getrusage(resource.RUSAGE_SELF)[:2])},
    )
    _show(metrics, "process_open_fds", "Number of open file descriptors.", _open_files)
    _show(metrics, "process_max_fds", "Maximum number of open file descriptors.", _most_files)
    if os.path.exists("/proc/self/stat"):
        _show(metrics, "process_resident_memory_bytes", "Resident memory size in bytes.", _resident)
        started = "Start time of the process since unix epoch in seconds."
        _show(metrics, "process_start_time_seconds", started, _start_seconds)
    metrics.gauge(
        "kubernetes_build_info",
        "A metric with a constant '1' value labeled by what was built.",
        tuple(build),
    ).set(1.0, *build.values())


def _show(metrics: Metrics, name: str, help_text: str, read: Callable[[], float]) -> None:
    metrics.gauge(name, help_text).read_from(lambda: {(): read()})


def _resident() -> float:
    with open("/proc/self/statm") as file:
        return float(file.read().split()[1]) * _PAGE_BYTES


def _open_files() -> float:
    return float(len(os.listdir("/dev/fd")) - 1)  # the listing has one of its own


def _most_files() -> float:
    return float(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _start_seconds() -> float:
    with open("/proc/self/stat") as file:
        ticks = float(file.read().rpartition(")")[2].split()[_START_FIELD])
    with open("/proc/stat") as file:
        booted = next(float(line.split()[1]) for line in file if line.startswith("btime"))
    return booted + ticks / _TICKS
