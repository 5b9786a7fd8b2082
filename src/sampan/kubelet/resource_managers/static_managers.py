"""Static CPU and memory managers, as a node's settings and its machine have them.

Job: build those whose policy is static; refuse what the machine cannot do.
"""

import math

from sampan.api.quantity import Format, from_value
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.resource_managers.cpu_manager import CpuManager
from sampan.kubelet.resource_managers.cpu_policy import BadCpuState, static_policy
from sampan.kubelet.resource_managers.cpu_sets import cpus_text
from sampan.kubelet.resource_managers.machine_topology import MachineTopology, read_topology
from sampan.kubelet.resource_managers.manager_settings import (
    CPU_STATIC,
    MEMORY_STATIC,
    ManagerSettings,
)
from sampan.kubelet.resource_managers.managers import CannotManage, Managers
from sampan.kubelet.resource_managers.memory_manager import MemoryManager, initial_nodes
from sampan.kubelet.resource_managers.topology_policies import NONE


def static_managers(
    settings: ManagerSettings, machine: Machine, root_dir: str, tasks: Tasks, metrics: Metrics
) -> Managers:
    """Blocking. Raises CannotManage, BadState."""
    cpus, memory = None, None
    topology = read_topology(machine.capacity.memory_bytes)
    _check(settings, topology)
    if settings.cpu_policy == CPU_STATIC:
        cpus = _cpu_manager(settings, machine, topology, root_dir, tasks, metrics)
    if settings.memory_policy == MEMORY_STATIC:
        _check_memory(settings, machine, topology)
        nodes = initial_nodes(topology.memory, settings.reserved_memory)
        memory = MemoryManager(nodes, root_dir, tasks=tasks, metrics=metrics)
    return Managers(topology.numa, cpus, memory)


def _check(settings: ManagerSettings, topology: MachineTopology) -> None:
    wanted = settings.topology
    if wanted.policy != NONE and len(topology.numa.ids) > wanted.most_numa_nodes:
        raise CannotManage(
            f"unsupported on machines with more than {wanted.most_numa_nodes} NUMA Nodes"
        )
    online = topology.cpus.details.cpus
    if not settings.reserved_cpus <= online:
        raise CannotManage(
            f"reserved-cpus: {cpus_text(settings.reserved_cpus)} is not a subset of online-cpus: "
            f"{cpus_text(online)}"
        )
    details = topology.cpus.details
    by_socket = settings.cpu_policy == CPU_STATIC and settings.cpu_options.align_by_socket
    if by_socket and len(details.sockets) > len(details.numa_nodes):
        raise CannotManage(
            "Align by socket is not compatible with hardware where number of sockets are more "
            "than number of NUMA"
        )


def _cpu_manager(
    settings: ManagerSettings,
    machine: Machine,
    topology: MachineTopology,
    root_dir: str,
    tasks: Tasks,
    metrics: Metrics,
) -> CpuManager:
    reserved = math.ceil(machine.capacity.reserved_cpu_milli / 1000)
    if not reserved:
        raise CannotManage(
            "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be "
            "greater than zero"
        )
    try:
        policy = static_policy(
            topology.cpus, reserved, settings.reserved_cpus, settings.cpu_options
        )
    except BadCpuState as error:
        raise CannotManage(f"new static policy error: {error}") from error
    return CpuManager(policy, root_dir, tasks=tasks, metrics=metrics)


def _check_memory(settings: ManagerSettings, machine: Machine, topology: MachineTopology) -> None:
    total: dict[str, int] = {}
    for node, limits in settings.reserved_memory.items():
        if node not in topology.memory:
            raise CannotManage(
                f"the reserved memory configuration references a NUMA node {node} that does not "
                "exist on this machine"
            )
        for resource, amount in limits.items():
            total[resource] = total.get(resource, 0) + amount
    kept = {"memory": machine.capacity.reserved_memory_bytes}
    for resource in sorted({*total, *kept}):
        said, is_kept = total.get(resource, 0), kept.get(resource, 0)
        if said != is_kept:
            raise CannotManage(
                f'the total amount "{_written(said)}" of type "{resource}" is not equal to the '
                f'value "{_written(is_kept)}" determined by Node Allocatable feature'
            )
    if not total.get("memory"):
        raise CannotManage("[memorymanager] you should specify the system reserved memory")


def _written(amount: int) -> str:
    return str(from_value(amount, Format.BINARY_SI))
