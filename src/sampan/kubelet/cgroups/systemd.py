"""Slices of systemd as cgroups of pods: what systemd is told, and telling it.

Job: a path and its limits → words for systemd's bus (pure); run them.
Invariant: nothing is written into a slice's folder behind systemd's back, except huge pages, which
    systemd does not know.
Owner: Cgroups.
"""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from sampan.kubelet.cgroups.limits import PERIOD_MICROSECONDS, Limits, weight_of
from sampan.kubelet.cgroups.names import unit

RUNS = Path("/run/systemd/system")  # as sd_booted(3)
_SECONDS = 10.0
_MANAGER = (
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
)
_MICROSECONDS_PER_SECOND = 1_000_000

Property = tuple[str, str, str]  # name, D-Bus type, value


class SystemdFailure(Exception):
    """systemd refused, or there is none."""


def is_running(runs: Path = RUNS) -> bool:
    return runs.is_dir()


def limits_of(limits: Limits, *, v2: bool) -> Iterator[Property]:
    """As runc's systemd manager names them."""
    if v2:
        yield "CPUWeight", "t", str(weight_of(limits.cpu_shares))
    else:
        yield "CPUShares", "t", str(limits.cpu_shares)
    if limits.cpu_quota:
        per_second = limits.cpu_quota * _MICROSECONDS_PER_SECOND // limits.cpu_period
        yield "CPUQuotaPerSecUSec", "t", str(per_second)
        if limits.cpu_period != PERIOD_MICROSECONDS:
            yield "CPUQuotaPeriodUSec", "t", str(limits.cpu_period)
    if limits.memory_bytes:
        yield "MemoryMax" if v2 else "MemoryLimit", "t", str(limits.memory_bytes)
    if limits.pids:
        yield "TasksMax", "t", str(limits.pids)


def start(path: str, limits: Limits, *, v2: bool) -> list[str]:
    """Words for busctl: a slice that exists as long as nobody stops it."""
    parent = unit(path.rpartition("/")[0])
    words = ["Description", "s", f"sampan: {path}", "DefaultDependencies", "b", "false"]
    count = 2
    if parent:
        words += ["Wants", "as", "1", parent]
        count += 1
    for accounting in ("CPUAccounting", "MemoryAccounting", "TasksAccounting"):
        words += [accounting, "b", "true"]
        count += 1
    for item in limits_of(limits, v2=v2):
        words += item
        count += 1
    return _call("StartTransientUnit", "ssa(sv)a(sa(sv))", unit(path), "replace", str(count),
                 *words, "0")  # fmt: skip


def change(path: str, limits: Limits, *, v2: bool) -> list[str]:
    given = list(limits_of(limits, v2=v2))
    words = [word for item in given for word in item]
    return _call("SetUnitProperties", "sba(sv)", unit(path), "true", str(len(given)), *words)


def stop(path: str) -> list[str]:
    return _call("StopUnit", "ss", unit(path), "replace")


def _call(method: str, signature: str, *words: str) -> list[str]:
    return ["busctl", "--quiet", "call", *_MANAGER, method, signature, *words]


def run_systemctl(command: Sequence[str]) -> None:
    """Some milliseconds, in which nothing else happens. Raises SystemdFailure."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SystemdFailure(f"systemd cannot be asked: {error}") from error
    if done.returncode:
        raise SystemdFailure(f"{command[6]} {command[8]}: {done.stderr.strip()}")
