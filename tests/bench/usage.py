"""Memory and processor time of processes, from /proc."""

import time
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """All descendants."""
    found = []
    for entry in Path(f"/proc/{pid}/task").iterdir():
        for child in (entry / "children").read_text().split():
            found += [int(child), *children_of(int(child))]
    return found


def our_processes(pid: int) -> list[int]:
    """sampan and its helpers, without containerd and what that runs."""

    def name(one: int) -> str:
        return Path(f"/proc/{one}/comm").read_text().strip()

    return [one for one in (pid, *children_of(pid)) if not name(one).startswith("containerd")]


def pss_mib(pids: list[int]) -> float:
    """Proportional set size: shared pages count once."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def cpu_seconds(pids: list[int]) -> float:
    """By each process's own clock, in nanoseconds; /proc counts hundredths of a second."""
    return sum(time.clock_gettime(_clock_of(pid)) for pid in pids)


def _clock_of(pid: int) -> int:
    """As clock_getcpuclockid makes it on Linux."""
    return (~pid << 3) | 2
