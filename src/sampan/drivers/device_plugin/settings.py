"""Settings of the made-up device plugin: one frozen value."""

from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DevicePluginSettings:
    resource: str
    directory: str  # device-plugins of the kubelet
    count: int = 4
    numa_nodes: int = 0  # devices are spread over so many; 0: they do not say where they are
    device: str = "/dev/null"  # what a container finds as /dev/<resource>-<device>
    cdi_kind: str = ""  # with it, CDI names instead of device nodes
    pre_start: bool = False
    prefers_last: bool = False  # GetPreferredAllocation: the highest ids
    health: str = ""  # a JSON file, id → Healthy | Unhealthy; watched
    faults: str = ""
