"""Where a pod's cgroup is and what it may use. Pure.

Job: pod → the path of its cgroup below the node's root; pod → limits; limits → what to write where,
    for both versions of the kernel's interface.
Invariant: a pod's limit is set only if every container has one, init containers too, or the pod
    itself.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from sampan.api.objects import Obj, uid_of
from sampan.api.quantity import ZERO
from sampan.api.rules import pod_resources
from sampan.api.rules.qos import qos_class
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.names import CPU_PERIOD, pod_folder

PERIOD_MICROSECONDS = CPU_PERIOD
QUOTA_MIN_MICROSECONDS = 1_000
SHARES_MIN, SHARES_MAX = 2, 262_144
# As upstream: quality of service → the folder of its pods. Guaranteed pods are directly below.
FOLDERS = {"Guaranteed": "", "Burstable": "/burstable", "BestEffort": "/besteffort"}


@dataclass(frozen=True, slots=True)
class Limits:
    """0 or nothing: no limit."""

    cpu_shares: int = SHARES_MIN
    cpu_quota: int = 0
    memory_bytes: int = 0
    pids: int = 0
    cpu_period: int = PERIOD_MICROSECONDS
    hugepages: Mapping[str, int] = field(default_factory=dict)  # "2MB" → bytes


@dataclass(frozen=True, slots=True)
class PodBounds:
    """What holds for every pod of a node."""

    pids: int = 0  # 0 or less: no limit
    quota: bool = True  # limits of cpu are kept
    period: int = PERIOD_MICROSECONDS  # of that


NO_BOUNDS = PodBounds()


@dataclass(frozen=True, slots=True)
class Setting:
    controller: str
    file: str
    value: str


def root_of(data_dir: Path) -> str:
    """Several clusters on one machine do not share a folder."""
    return "/sampan-" + hashlib.sha256(str(data_dir.resolve()).encode()).hexdigest()[:12]


def pod_cgroup(pod: Obj, root: str) -> str:
    """Empty without a root: the runtime chooses a place."""
    if not root:
        return ""
    return f"{root}/kubepods{FOLDERS[qos_class(pod)]}/{pod_folder(uid_of(pod))}"


def pod_limits(pod: Obj, bounds: PodBounds = NO_BOUNDS) -> Limits:
    asked, most = pod_resources.requests(pod), pod_resources.limits(pod)
    holding = {
        name: most[name]
        for name in ("cpu", "memory")
        if name in most and pod_resources.is_limited(pod, name)
    }
    cpu_limit = holding.get("cpu", ZERO).milli() if bounds.quota else 0
    pages = {
        page_size(name): amount.value()
        for name, amount in most.items()
        if name.startswith("hugepages-")
    }
    return Limits(
        cpu_shares=shares_of(asked.get("cpu", ZERO).milli()),
        cpu_quota=max(QUOTA_MIN_MICROSECONDS, cpu_limit * bounds.period // 1000)
        if cpu_limit
        else 0,
        memory_bytes=holding.get("memory", ZERO).value(),
        pids=max(bounds.pids, 0),
        cpu_period=bounds.period,
        hugepages=pages,
    )


def page_size(name: str) -> str:
    """hugepages-2Mi → 2MB, the kernel's own spelling."""
    size = name.removeprefix("hugepages-")
    return size.replace("Ki", "KB").replace("Mi", "MB").replace("Gi", "GB")


def shares_of(milli: int) -> int:
    return max(SHARES_MIN, min(milli * 1024 // 1000, SHARES_MAX))


def weight_of(shares: int) -> int:
    """cgroup v1's 2…262144 → v2's 1…10000, as runc and the kubelet convert it."""
    return 1 + (shares - SHARES_MIN) * 9999 // (SHARES_MAX - SHARES_MIN)


def amount_in(text: str) -> float:
    """What one of the files below says: the first number; infinite where there is no limit."""
    first = text.split()[0] if text.split() else "0"
    return math.inf if first in ("max", "-1") else float(first)


def settings_v1(limits: Limits) -> Iterator[Setting]:
    yield Setting("cpu", "cpu.shares", str(limits.cpu_shares))
    if limits.cpu_quota:
        yield Setting("cpu", "cpu.cfs_period_us", str(limits.cpu_period))
        yield Setting("cpu", "cpu.cfs_quota_us", str(limits.cpu_quota))
    if limits.memory_bytes:
        yield Setting("memory", "memory.limit_in_bytes", str(limits.memory_bytes))
    if limits.pids:
        yield Setting("pids", "pids.max", str(limits.pids))
    for size, amount in limits.hugepages.items():
        yield Setting("hugetlb", f"hugetlb.{size}.limit_in_bytes", str(amount))


def settings_v2(limits: Limits) -> Iterator[Setting]:
    yield Setting("cpu", "cpu.weight", str(weight_of(limits.cpu_shares)))
    if limits.cpu_quota:
        yield Setting("cpu", "cpu.max", f"{limits.cpu_quota} {limits.cpu_period}")
    if limits.memory_bytes:
        yield Setting("memory", "memory.max", str(limits.memory_bytes))
    if limits.pids:
        yield Setting("pids", "pids.max", str(limits.pids))
    for size, amount in limits.hugepages.items():
        yield Setting("hugetlb", f"hugetlb.{size}.max", str(amount))
