"""What this machine is: processors, memory, disk, kernel, system.

Job: read it once, from the places where Linux keeps it. Simulated nodes have it made up.
"""

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.eviction.eviction_rules import MEMORY, NODEFS
from sampan.kubelet.settings import Capacity, KubeletSettings

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


@dataclass(frozen=True, slots=True)
class Machine:
    capacity: Capacity
    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    kernel_version: str = ""
    os_image: str = ""
    os_name: str = "linux"
    architecture: str = "amd64"
    swap_bytes: int = 0
    # Of containers' files; empty: the machine has no SELinux.
    selinux_context: str = ""
    # Size of a page, as resources name it → bytes that are set aside for such pages.
    hugepages: Mapping[str, int] = field(default_factory=lambda: {"1Gi": 0, "2Mi": 0})


SIMULATED = Machine(
    Capacity(cpu_milli=32_000, memory_bytes=256 * 1024**3, ephemeral_bytes=1024**4),
    kernel_version="simulated",
    os_image="simulated",
)


def read_machine(root_dir: str, capacity: Capacity | None = None) -> Machine:
    memory = _memory()
    if capacity is None:
        capacity = Capacity(
            cpu_milli=1000 * (os.cpu_count() or 1),
            memory_bytes=memory.get("MemTotal", 0),
            ephemeral_bytes=_disk(root_dir),
        )
    return Machine(
        capacity=capacity,
        machine_id=_text("/etc/machine-id"),
        system_uuid=_text("/sys/class/dmi/id/product_uuid") or _text("/etc/machine-id"),
        boot_id=_text("/proc/sys/kernel/random/boot_id"),
        kernel_version=platform.release(),
        os_image=_os_image(),
        os_name=platform.system().lower(),
        architecture=ARCHITECTURES.get(platform.machine(), platform.machine()),
        swap_bytes=memory.get("SwapTotal", 0),
        selinux_context=read_selinux_context(),
        hugepages=read_hugepages(),
    )


def read_selinux_context(root: Path = Path("/")) -> str:
    """As go-selinux finds it: of the policy that is in effect."""
    if not (root / "sys/fs/selinux/enforce").exists():
        return ""
    kinds = _assigned(root / "etc/selinux/config")
    contexts = root / "etc/selinux" / kinds.get("SELINUXTYPE", "targeted") / "contexts"
    return _assigned(contexts / "lxc_contexts").get("file", "")


def _assigned(path: Path) -> dict[str, str]:
    """`name = "value"` of each line."""
    pairs = (line.partition("=") for line in _text(str(path)).splitlines() if line[:1] != "#")
    return {name.strip(): value.strip().strip('"') for name, sign, value in pairs if sign}


def read_hugepages(kernel: Path = Path("/sys/kernel/mm/hugepages")) -> dict[str, int]:
    found = {}
    for folder in sorted(kernel.glob("hugepages-*kB")):
        size = int(folder.name.removeprefix("hugepages-").removesuffix("kB"))
        count = _text(str(folder / "nr_hugepages"))
        found[_binary(size)] = size * 1024 * int(count) if is_digits(count) else 0
    return found


def _binary(kibibytes: int) -> str:
    """2048 → 2Mi, 1048576 → 1Gi."""
    for unit in ("Ki", "Mi"):
        if kibibytes < 1024:
            return f"{kibibytes}{unit}"
        kibibytes //= 1024
    return f"{kibibytes}Gi"


def less_reserved(capacity: Capacity, settings: KubeletSettings) -> Capacity:
    """As upstream: what is reserved, and what evictions would keep free in any case."""
    total = {MEMORY: capacity.memory_bytes, NODEFS: capacity.ephemeral_bytes}
    kept = {
        threshold.signal: max(
            threshold.amount, int(threshold.percent / 100 * total[threshold.signal])
        )
        for threshold in settings.eviction.thresholds
        if threshold.signal in total and not threshold.grace_seconds
    }
    asked = settings.reserved
    return replace(
        capacity,
        pods=_most_pods(capacity, settings),
        reserved_cpu_milli=asked.cpu_milli,
        reserved_memory_bytes=asked.memory_bytes + kept.get(MEMORY, 0),
        reserved_ephemeral_bytes=asked.ephemeral_bytes + kept.get(NODEFS, 0),
    )


def _most_pods(capacity: Capacity, settings: KubeletSettings) -> int:
    if not settings.pods_per_core:
        return settings.max_pods
    return min(settings.max_pods, settings.pods_per_core * (capacity.cpu_milli // 1000))


def _memory() -> dict[str, int]:
    values = {}
    for line in _text("/proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        amount = rest.split()
        if amount and is_digits(amount[0]):
            values[name] = int(amount[0]) * 1024
    return values


def _disk(path: str) -> int:
    there = Path(path)
    while not there.exists() and there != there.parent:
        there = there.parent
    return shutil.disk_usage(there).total


def _os_image() -> str:
    for line in _text("/etc/os-release").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip('"')
    return platform.system()


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
