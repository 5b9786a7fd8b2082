"""CPU and memory manager of a node: none, unless the settings ask for one.

Job: refuse the state file of another policy; build the managers whose policy is static.
Invariant: where nothing is pinned, nothing of the machine is read, nothing written, and no policy
    loaded.
"""

from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.resource_managers.manager_settings import (
    CPU_STATE,
    CPU_STATIC,
    MEMORY_STATE,
    MEMORY_STATIC,
    NO_MANAGERS,
    ManagerSettings,
)
from sampan.kubelet.resource_managers.managers import Managers
from sampan.kubelet.resource_managers.state_file import read_state


def build_managers(
    settings: ManagerSettings, machine: Machine, root_dir: str, *, tasks: Tasks, metrics: Metrics
) -> Managers:
    """Blocking. Raises CannotManage, BadState."""
    for (manager, file), static, policy in (
        (CPU_STATE, CPU_STATIC, settings.cpu_policy),
        (MEMORY_STATE, MEMORY_STATIC, settings.memory_policy),
    ):
        if policy != static:
            read_state(manager, f"{root_dir}/{file}", policy)
    if settings == NO_MANAGERS:
        return Managers()
    from sampan.kubelet.resource_managers.static_managers import static_managers

    return static_managers(settings, machine, root_dir, tasks, metrics)
