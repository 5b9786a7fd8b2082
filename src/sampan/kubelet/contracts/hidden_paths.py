"""What a container that is not privileged must not see, or not write.

Job: the paths, as upstream's kubelet gives them to every runtime.
"""

from functools import lru_cache
from pathlib import Path

from sampan.core.digits import is_digits

_MASKED_PATHS = (
    "/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys",
    "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
    "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
)  # fmt: skip
READ_ONLY_PATHS = (
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
)  # fmt: skip


@lru_cache(1)
def masked_paths(processors: str = "/sys/devices/system/cpu") -> tuple[str, ...]:
    """With what each processor of this machine says of its heat, where it does."""
    those = Path(processors).glob("cpu*/thermal_throttle")
    numbers = [path.parent.name.removeprefix("cpu") for path in those]
    found = sorted(int(number) for number in numbers if is_digits(number))
    return (*_MASKED_PATHS, *(f"{processors}/cpu{at}/thermal_throttle" for at in found))
