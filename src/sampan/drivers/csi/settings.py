"""Settings of csi.sampan.dev: one frozen value.

Job: where it listens and keeps volumes, and which of CSI's abilities it has.
"""

from sampan.core.fast_dataclass import dataclass

NAME = "csi.sampan.dev"
TOPOLOGY_KEY = "topology.sampan.dev/node"
# Parameters of a StorageClass, and attributes of an inline volume.
KIND, SIZE = "kind", "size"
DIRECTORY, LOOP = "directory", "loop"
MUTABLE = frozenset({"tier"})  # what a VolumeAttributesClass may set: noted, without effect
EPHEMERAL = "csi.storage.k8s.io/ephemeral"


@dataclass(frozen=True, slots=True)
class DriverSettings:
    node_id: str
    root: str  # volumes and snapshots are below it
    name: str = NAME
    capacity_bytes: int = 0  # of all volumes together; 0: what the disk has
    most_volumes: int = 0  # on this node; 0: not said
    attaches: bool = False  # volumes are attached before they are staged
    stages: bool = True
    gives_group: bool = False  # fsGroup is the driver's affair
    faults: str = ""  # a file of faults, read before each call; empty: none
