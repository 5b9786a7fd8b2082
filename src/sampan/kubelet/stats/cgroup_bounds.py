"""What a cgroup may use, how long it waited, and what it read and wrote on disks.

Job: the folders of one cgroup → a Bounds, for both versions of the interface.
Invariant: what the kernel does not say is left out; no limit is 0, as cAdvisor shows it.
"""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.stats.usage import number_of, text_of

_NO_LIMIT = 1 << 62  # from there on the kernel means none
_PRESSURES = ("cpu", "memory", "io")
_MICRO = 1_000_000
_CFS = ("quota", "period")
_MEMORY = {
    "memory.max": ("memory.max", "memory.swap.max", "memory.min"),
    "memory.limit_in_bytes": (
        "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.soft_limit_in_bytes"),
}  # fmt: skip
_FIGURES = ("rbytes", "wbytes", "rios", "wios")
_BLKIO = {
    "blkio.throttle.io_service_bytes_recursive": {"Read": "rbytes", "Write": "wbytes"},
    "blkio.throttle.io_serviced_recursive": {"Read": "rios", "Write": "wios"},
}


@dataclass(frozen=True, slots=True)
class Disk:
    device: str
    read_bytes: int = 0
    written_bytes: int = 0
    reads: int = 0
    writes: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    cpu_shares: int | None = None
    cpu_period: int | None = None
    cpu_quota: int = 0  # 0: none
    memory_bytes: int | None = None
    swap_bytes: int | None = None
    reserved_bytes: int | None = None
    # cpu, memory, io → seconds in which some, and all, of its tasks waited
    pressure: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    disks: tuple[Disk, ...] = ()


NO_BOUNDS = Bounds()


def read_bounds(cpu: Path | None, memory: Path | None, disks: Path | None) -> Bounds:
    """The folder in the hierarchies of cpu, memory and blkio; the same one in version 2."""
    return Bounds(
        **_cpu(cpu),
        **_memory(memory),
        pressure=_pressure(memory),
        disks=_disks(disks),
    )


def _cpu(folder: Path | None) -> dict[str, int]:
    if folder is None or not folder.is_dir():
        return {}
    if (weight := text_of(folder / "cpu.weight").strip()) and is_digits(weight):
        quota, _, period = text_of(folder / "cpu.max").strip().partition(" ")
        shares = 2 + (int(weight) - 1) * 262142 // 9999
    else:
        quota, period = (text_of(folder / f"cpu.cfs_{word}_us").strip() for word in _CFS)
        shares = number_of(folder / "cpu.shares")
    return {
        "cpu_shares": shares,
        "cpu_period": int(period) if is_digits(period) else 0,
        "cpu_quota": int(quota) if is_digits(quota) else 0,
    }


def _memory(folder: Path | None) -> dict[str, int]:
    if folder is None:
        return {}
    for first, files in _MEMORY.items():
        if (folder / first).exists():
            limits = (number_of(folder / file) for file in files)
            kept = (0 if limit > _NO_LIMIT else limit for limit in limits)
            return dict(zip(("memory_bytes", "swap_bytes", "reserved_bytes"), kept, strict=True))
    return {}


def _pressure(folder: Path | None) -> dict[str, tuple[float, float]]:
    """Version 2 only."""
    if folder is None:
        return {}
    found = {}
    for what in _PRESSURES:
        text = text_of(folder / f"{what}.pressure")
        totals = {
            line.split()[0]: int(line.rpartition("total=")[2]) / _MICRO
            for line in text.splitlines()
            if is_digits(line.rpartition("total=")[2])
        }
        if totals:
            found[what] = (totals.get("some", 0.0), totals.get("full", 0.0))
    return found


def _disks(folder: Path | None) -> tuple[Disk, ...]:
    if folder is None:
        return ()
    figures: dict[str, dict[str, int]] = {}
    for line in text_of(folder / "io.stat").splitlines():
        device, *parts = line.split()
        pairs = (part.partition("=") for part in parts)
        figures[device] = {name: int(value) for name, _, value in pairs if is_digits(value)}
    for file, names in _BLKIO.items():
        for line in text_of(folder / file).splitlines():
            parts = line.split()
            if len(parts) == 3 and parts[1] in names and is_digits(parts[2]):
                figures.setdefault(parts[0], {})[names[parts[1]]] = int(parts[2])
    return tuple(
        Disk(_device(number), *(found.get(name, 0) for name in _FIGURES))
        for number, found in sorted(figures.items())
    )


def _device(number: str) -> str:
    """`254:0` → /dev/vda; as it is where nobody knows its name."""
    for line in text_of(Path(f"/sys/dev/block/{number}/uevent")).splitlines():
        name, _, value = line.partition("=")
        if name == "DEVNAME":
            return f"/dev/{value}"
    return number
