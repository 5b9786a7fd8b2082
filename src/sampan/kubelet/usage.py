"""What a cgroup, and the machine, has used: read from the kernel's files.

Job: one folder of a cgroup hierarchy → a Usage, for both versions of the interface.
Invariant: a folder that is gone, or a figure that the kernel does not give, is 0 and no error.
"""

from pathlib import Path

from sampan.core.records import dataclass

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


def read_usage(cpu: Path | None, memory: Path | None, pids: Path | None) -> Usage:
    """The folder of one cgroup in the hierarchies of the three; the same one in version 2."""
    used, stat = 0, {}
    if memory is not None:
        used = _number(memory / "memory.current") or _number(memory / "memory.usage_in_bytes")
        stat = _fields(memory / "memory.stat")
    inactive = stat.get("total_inactive_file", stat.get("inactive_file", 0))
    return Usage(
        cpu_nanoseconds=_cpu(cpu) if cpu is not None else 0,
        memory_bytes=used,
        working_set_bytes=max(0, used - inactive),
        rss_bytes=stat.get("total_rss", stat.get("anon", 0)),
        page_faults=stat.get("total_pgfault", stat.get("pgfault", 0)),
        major_page_faults=stat.get("total_pgmajfault", stat.get("pgmajfault", 0)),
        processes=_number(pids / "pids.current") if pids is not None else 0,
    )


def read_machine_usage(proc: Path = Path("/proc")) -> Usage:
    """Of everything that runs on the machine."""
    fields = _text(proc / "stat").partition("\n")[0].split()
    # user nice system idle iowait irq softirq steal, in hundredths of a second
    ticks = [int(one) for one in fields[1:9] if one.isdigit()]
    busy = sum(ticks) - sum(ticks[3:5])
    memory = {
        name: int(rest.split()[0]) * 1024
        for name, _, rest in (line.partition(":") for line in _text(proc / "meminfo").splitlines())
        if rest.split()
    }
    total = memory.get("MemTotal", 0)
    return Usage(
        cpu_nanoseconds=busy * (NANO // 100),
        memory_bytes=total - memory.get("MemFree", 0),
        working_set_bytes=total - memory.get("MemAvailable", 0),
        rss_bytes=memory.get("AnonPages", 0),
    )


def _cpu(folder: Path) -> int:
    v1 = _number(folder / "cpuacct.usage")
    return v1 or _fields(folder / "cpu.stat").get("usage_usec", 0) * 1000


def _fields(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in _text(file).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _number(file: Path) -> int:
    text = _text(file).strip()
    return int(text) if text.isdigit() else 0


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
