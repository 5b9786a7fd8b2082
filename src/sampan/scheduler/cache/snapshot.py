"""All nodes at one moment, as read-only columns.

Job: what filters and scores read.
Invariant: index i means the same node in every column; nothing here can be written through.
Invariant: a snapshot is read before its columns change again: a decision does not await.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from sampan.api.rules.tolerations import Taint
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.devices.device_allocation import DeviceAllocation
from sampan.scheduler.model.arrays import BoolArray, IntArray, LabelNumbers
from sampan.scheduler.model.disks import Disk
from sampan.scheduler.model.node_info import NodeInfo
from sampan.scheduler.model.pod_terms import Carried, Kind
from sampan.scheduler.model.volumes import Volumes
from sampan.scheduler.model.workloads import Workloads

# (protocol, port) → node → address → how many pods hold it
HeldPorts = Mapping[tuple[str, int], Mapping[str, Mapping[str, int]]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    rows: Sequence[NodeInfo]
    at: Mapping[str, int]  # node name → index
    allocatable: Mapping[str, IntArray]  # by resource
    requested: Mapping[str, IntArray]
    scored_cpu: IntArray  # requested, with defaults for containers that request none
    scored_memory: IntArray
    pods: IntArray
    allowed_pods: IntArray
    unschedulable: BoolArray
    taint_set: IntArray  # index into taint_sets
    taint_sets: Mapping[int, frozenset[Taint]]
    ports: HeldPorts
    label: Callable[[str], IntArray]  # key → value ids, ABSENT where the label is not there
    has_label: Callable[[str], bool]  # whether any node has it
    label_value: Callable[[str], int]  # value → id
    label_numbers: Callable[[str], LabelNumbers]  # of labels that are whole numbers
    image_bytes: Callable[[str], IntArray]  # 0 where the image is not there
    pod_count: Callable[[Kind], IntArray]  # pods of a kind
    carried: Callable[[str], Collection[Carried]]  # namespace → terms that may concern its pods
    carriers: Callable[[Carried], IntArray]  # pods that carry a term
    namespaces: Mapping[str, Mapping[str, str]]  # their labels
    volumes: Volumes
    claim_uses: Mapping[str, int]  # claim → pods that mount it
    claims_on: Mapping[str, Mapping[str, int]]  # the same by node
    disks_on: Mapping[str, Mapping[Disk, int]]
    workloads: Workloads
    devices: DeviceAllocation
    declares: Callable[[str], IntArray]  # feature → 1 where a node declares it

    def __len__(self) -> int:
        return len(self.rows)
