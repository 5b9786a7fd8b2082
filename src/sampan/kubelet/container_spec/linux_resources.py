"""What a container may use, in the kernel's figures. Pure.

Job: requests, limits, and what the node gives it → shares, quota, memory, swap, huge pages, cpuset.
"""

from sampan.api.objects import Obj, spec_of
from sampan.api.quantity import ZERO
from sampan.api.rules.pod_resources import quantities
from sampan.api.rules.pods import is_critical
from sampan.api.rules.qos import qos_class
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.limits import page_size
from sampan.kubelet.cgroups.names import CPU_PERIOD
from sampan.kubelet.container_spec.oom_score import oom_score
from sampan.kubelet.contracts.resources_hook import NO_GRANTS, Grants
from sampan.kubelet.contracts.runtime import LinuxResources

# As upstream: the smallest values that the kernel takes, and the usual period.
_CPU_QUOTA_MIN, _NO_QUOTA = 1_000, -1
_CPU_SHARES_MIN, _CPU_SHARES_MAX = 2, 262_144


@dataclass(frozen=True, slots=True)
class Swap:
    """Of a node whose kernel can keep containers from it."""

    total_bytes: int = 0
    limited: bool = False  # LimitedSwap: Burstable pods get their share; else nobody gets any


@dataclass(frozen=True, slots=True)
class NodeResources:
    memory_bytes: int = 0
    page_sizes: tuple[str, ...] = ()  # of huge pages, as the kernel spells them: 2MB
    swap: Swap | None = None
    cpu_quota: bool = True  # limits of cpu are kept
    oom_group: bool = False  # a container that is out of memory goes whole
    cpu_period: int = CPU_PERIOD  # of the quota


def linux_resources(
    pod: Obj, container: Obj, node: NodeResources, grants: Grants = NO_GRANTS
) -> LinuxResources:
    resources = container.get("resources") or {}
    # As upstream: a container without a limit of its own has the pod's.
    whole, own = (spec_of(pod).get("resources") or {}).get("limits"), resources.get("limits")
    limits = quantities({**(whole or {}), **(own or {})})
    cpu = quantities(resources.get("requests")).get("cpu", limits.get("cpu", ZERO))
    limit = limits.get("cpu", ZERO).milli() if node.cpu_quota else 0
    pages = {
        page_size(name): amount.value()
        for name, amount in quantities(own).items()
        if name.startswith("hugepages-")
    }
    return LinuxResources(
        # As upstream: who asks for none gets none.
        hugepages={**dict.fromkeys(node.page_sizes, 0), **pages},
        cpu_shares=cpu_shares(cpu.milli()),
        # As upstream: nobody else runs on its processors, so that nothing has to be held back.
        cpu_quota=_NO_QUOTA if grants.exclusive_cpus else cpu_quota(limit, node.cpu_period),
        cpu_period=node.cpu_period if limit else 0,
        memory_limit_bytes=limits.get("memory", ZERO).value(),
        oom_score_adj=oom_score(pod, container, node.memory_bytes),
        cpus=grants.cpus,
        memory_nodes=grants.memory_nodes,
        swap_bytes=None if node.swap is None else _swap(pod, container, node.swap, node),
        oom_group=node.oom_group,
    )


def _swap(pod: Obj, container: Obj, swap: Swap, node: NodeResources) -> int:
    """As upstream's LimitedSwap: as much of the swap as the container asks for of the memory."""
    if not swap.limited or is_critical(pod) or qos_class(pod) != "Burstable":
        return 0
    resources = container.get("resources") or {}
    asked, most = (
        quantities(resources.get(kind)).get("memory", ZERO).value()
        for kind in ("requests", "limits")
    )
    if asked == most or not node.memory_bytes > 0 or asked > node.memory_bytes:
        return 0
    return int(asked / node.memory_bytes * swap.total_bytes)


def cpu_shares(milli: int) -> int:
    return max(_CPU_SHARES_MIN, min(milli * 1024 // 1000, _CPU_SHARES_MAX))


def cpu_quota(milli: int, period: int = CPU_PERIOD) -> int:
    return max(_CPU_QUOTA_MIN, milli * period // 1000) if milli else 0
