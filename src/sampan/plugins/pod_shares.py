"""What containers have of a node's devices, processors, memory and claims: values.

Job: what is between who knows it and the PodResources protocol.
"""

from collections.abc import Sequence

from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DeviceShare:
    resource: str
    id: str
    node: int | None = None  # the NUMA node that it is on, or one of them


@dataclass(frozen=True, slots=True)
class MemoryShare:
    resource: str
    size: int
    nodes: Sequence[int]


@dataclass(frozen=True, slots=True)
class ClaimDevice:
    driver: str
    pool: str
    device: str
    cdi_devices: Sequence[str] = ()
    share: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimShare:
    name: str
    namespace: str
    devices: Sequence[ClaimDevice] = ()


@dataclass(frozen=True, slots=True)
class ContainerShare:
    """What one container has; without a name: what the node has to give."""

    name: str = ""
    devices: Sequence[DeviceShare] = ()
    cpus: Sequence[int] = ()
    memory: Sequence[MemoryShare] = ()
    claims: Sequence[ClaimShare] = ()


@dataclass(frozen=True, slots=True)
class PodShare:
    name: str
    namespace: str
    containers: Sequence[ContainerShare] = ()
