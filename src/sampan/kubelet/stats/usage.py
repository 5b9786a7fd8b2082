"""What a cgroup, and the machine, has used: read from the kernel's files.

Job: one folder of a cgroup hierarchy → a Usage, for both versions of the interface.
Invariant: a folder that is gone, or a figure that the kernel does not give, is 0 and no error.
"""

from pathlib import Path

from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass

NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    cpu_nanoseconds: int = 0
    memory_bytes: int = 0  # with the page cache
    working_set_bytes: int = 0  # without what the kernel would give back first
    rss_bytes: int = 0
    page_faults: int = 0
    major_page_faults: int = 0
    processes: int = 0
    cpu_user_nanoseconds: int = 0
    cpu_system_nanoseconds: int = 0
    cpu_periods: int = 0  # of a CPU quota; 0 without one
    cpu_throttled_periods: int = 0
    cpu_throttled_nanoseconds: int = 0
    cache_bytes: int = 0
    swap_bytes: int = 0
    mapped_bytes: int = 0
    peak_bytes: int = 0
    limit_failures: int = 0  # how often memory was asked for beyond the limit
    oom_kills: int = 0


@dataclass(frozen=True, slots=True)
class Interface:
    """One network interface, from the inside of its namespace."""

    name: str
    received_bytes: int = 0
    received_packets: int = 0
    receive_errors: int = 0
    receive_dropped: int = 0
    sent_bytes: int = 0
    sent_packets: int = 0
    send_errors: int = 0
    send_dropped: int = 0


def read_usage(
    cpu: Path | None, memory: Path | None, pids: Path | None, quota: Path | None = None
) -> Usage:
    """The folder of one cgroup in the hierarchies of cpuacct, memory, pids and cpu; the same one
    in version 2."""
    used, stat = 0, {}
    if memory is not None:
        used = number_of(memory / "memory.current") or number_of(memory / "memory.usage_in_bytes")
        stat = _fields(memory / "memory.stat")
    inactive = stat.get("total_inactive_file", stat.get("inactive_file", 0))
    return Usage(
        **_cpu(cpu, quota or cpu),
        **_memory_events(memory),
        cache_bytes=stat.get("total_cache", stat.get("file", 0)),
        swap_bytes=stat.get("total_swap", 0),
        mapped_bytes=stat.get("total_mapped_file", stat.get("file_mapped", 0)),
        memory_bytes=used,
        working_set_bytes=max(0, used - inactive),
        rss_bytes=stat.get("total_rss", stat.get("anon", 0)),
        page_faults=stat.get("total_pgfault", stat.get("pgfault", 0)),
        major_page_faults=stat.get("total_pgmajfault", stat.get("pgmajfault", 0)),
        processes=number_of(pids / "pids.current") if pids is not None else 0,
    )


def read_machine_usage(proc: Path = Path("/proc")) -> Usage:
    """Of everything that runs on the machine."""
    fields = text_of(proc / "stat").partition("\n")[0].split()
    # user nice system idle iowait irq softirq steal, in hundredths of a second
    ticks = [int(field) for field in fields[1:9] if is_digits(field)]
    busy = sum(ticks) - sum(ticks[3:5])
    memory = {
        name: int(rest.split()[0]) * 1024
        for name, _, rest in (
            line.partition(":") for line in text_of(proc / "meminfo").splitlines()
        )
        if rest.split()
    }
    total = memory.get("MemTotal", 0)
    return Usage(
        cpu_nanoseconds=busy * (NANO // 100),
        memory_bytes=total - memory.get("MemFree", 0),
        working_set_bytes=total - memory.get("MemAvailable", 0),
        rss_bytes=memory.get("AnonPages", 0),
    )


def read_interfaces(pid: int, proc: Path = Path("/proc")) -> tuple[Interface, ...]:
    """Of the namespace that a process is in; loopback is nobody's business."""
    found = []
    for line in text_of(proc / str(pid) / "net/dev").splitlines()[2:]:
        name, _, rest = line.partition(":")
        figures = [int(part) for part in rest.split() if is_digits(part)]
        if name.strip() != "lo" and len(figures) >= 12:
            found.append(Interface(name.strip(), *figures[:4], *figures[8:12]))
    return tuple(found)


def first_process(folder: Path | None) -> int:
    """Of those in a cgroup; 0 where there is none."""
    text = text_of(folder / "cgroup.procs") if folder is not None else ""
    first = text.partition("\n")[0]
    return int(first) if is_digits(first) else 0


def _cpu(folder: Path | None, quota: Path | None) -> dict[str, int]:
    """Version 1 counts in nanoseconds and hundredths of a second, version 2 in microseconds."""
    if folder is None or quota is None:
        return {}
    stat, old = _fields(quota / "cpu.stat"), _fields(folder / "cpuacct.stat")
    tick = NANO // 100
    return {
        "cpu_nanoseconds": number_of(folder / "cpuacct.usage") or stat.get("usage_usec", 0) * 1000,
        "cpu_user_nanoseconds": old.get("user", 0) * tick or stat.get("user_usec", 0) * 1000,
        "cpu_system_nanoseconds": old.get("system", 0) * tick or stat.get("system_usec", 0) * 1000,
        "cpu_periods": stat.get("nr_periods", 0),
        "cpu_throttled_periods": stat.get("nr_throttled", 0),
        "cpu_throttled_nanoseconds": stat.get("throttled_time", 0)
        or stat.get("throttled_usec", 0) * 1000,
    }


def _memory_events(folder: Path | None) -> dict[str, int]:
    if folder is None:
        return {}
    control, events = _fields(folder / "memory.oom_control"), _fields(folder / "memory.events")
    return {
        "peak_bytes": number_of(folder / "memory.max_usage_in_bytes")
        or number_of(folder / "memory.peak"),
        "limit_failures": number_of(folder / "memory.failcnt") or events.get("max", 0),
        "oom_kills": control.get("oom_kill", 0) or events.get("oom_kill", 0),
    }


def _fields(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in text_of(file).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and is_digits(pair[1])}


def number_of(file: Path) -> int:
    text = text_of(file).strip()
    return int(text) if is_digits(text) else 0


def text_of(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
