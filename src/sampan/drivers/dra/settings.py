"""Settings of gpu.sampan.dev: one frozen value."""

from sampan.core.fast_dataclass import dataclass

NAME = "gpu.sampan.dev"
VERSIONS = ("v1.DRAPlugin", "v1beta1.DRAPlugin")


@dataclass(frozen=True, slots=True)
class DraSettings:
    node_name: str
    name: str = NAME
    devices: int = 4
    partitions: int = 0  # each device is offered in so many parts; 0: as a whole
    memory: str = "80Gi"  # of each device
    cdi_directory: str = "/var/run/cdi"
    health: str = ""  # a JSON file, device → Healthy | Unhealthy; watched
    versions: tuple[str, ...] = VERSIONS
    writes_status: bool = False  # a condition of each device in the claim's status
    faults: str = ""
