"""Settings of the CPU, memory and topology managers of a node.

Job: one frozen value among the node's settings.
"""

from collections.abc import Mapping
from dataclasses import field

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.resource_managers.cpu_options import CpuOptions
from sampan.kubelet.resource_managers.cpu_sets import NO_CPUS, CpuSet
from sampan.kubelet.resource_managers.topology_policies import TopologySettings

NO_POLICY, CPU_STATIC = "none", "static"
NO_MEMORY_POLICY, MEMORY_STATIC = "None", "Static"
# The manager's name in messages, its state file.
CPU_STATE, MEMORY_STATE = ("CPU", "cpu_manager_state"), ("memory", "memory_manager_state")


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    cpu_policy: str = NO_POLICY
    cpu_options: CpuOptions = CpuOptions()
    reconcile_seconds: float = 10.0  # until a cpuset that could not be written is tried again
    reserved_cpus: CpuSet = NO_CPUS  # which processors pods do not get; empty: any
    memory_policy: str = NO_MEMORY_POLICY
    # NUMA node → resource → bytes: where what is reserved of the machine's memory is.
    reserved_memory: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    topology: TopologySettings = TopologySettings()


NO_MANAGERS = ManagerSettings()


def pinned_resources(settings: ManagerSettings) -> dict[str, str]:
    """What containers have of their own, and by whose policy, in upstream's words."""
    found = {}
    if settings.cpu_policy == CPU_STATIC:
        found["cpu"] = f'CPU Manager policy "{CPU_STATIC}"'
    if settings.memory_policy == MEMORY_STATIC:
        found["memory"] = f'Memory Manager policy "{MEMORY_STATIC}"'
    return found
