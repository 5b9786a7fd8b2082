"""CPU and memory manager of a node, as admission of pods has them.

Job: one value; and how it is refused.
"""

from typing import TYPE_CHECKING

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.resource_managers.numa import NumaNodes

if TYPE_CHECKING:
    from sampan.kubelet.resource_managers.cpu_manager import CpuManager
    from sampan.kubelet.resource_managers.memory_manager import MemoryManager


class CannotManage(Exception):
    """This machine, or what is reserved of it, does not do for what the settings ask. In
    upstream's words."""


@dataclass(frozen=True, slots=True)
class Managers:
    numa: NumaNodes = NumaNodes()
    cpu: "CpuManager | None" = None
    memory: "MemoryManager | None" = None
