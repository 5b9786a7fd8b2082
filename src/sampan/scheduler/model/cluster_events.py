"""Cluster events: what changed in the cluster that may let a refused pod be scheduled."""

from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.node_info import NodeInfo


@dataclass(frozen=True, slots=True)
class NodeAdded:
    node: NodeInfo


@dataclass(frozen=True, slots=True)
class NodeChanged:
    old: NodeInfo
    new: NodeInfo


@dataclass(frozen=True, slots=True)
class NodeGone:
    name: str


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod on a node ended, was deleted, or is about to be replaced by a changed one."""

    pod: AssignedPod
    node: str


@dataclass(frozen=True, slots=True)
class PodPlaced:
    """A pod on a node is new, or changed."""

    pod: AssignedPod
    node: str


@dataclass(frozen=True, slots=True)
class NamespaceChanged:
    name: str


@dataclass(frozen=True, slots=True)
class StorageChanged:
    """A claim, a volume, a class or a node's limits."""

    name: str


@dataclass(frozen=True, slots=True)
class DevicesChanged:
    """A claim to devices; None: a class of them or a slice, which may be anybody's."""

    claim: str | None = None
    freed: bool = False  # it had devices, and has none any more


Event = (
    NodeAdded
    | NodeChanged
    | NodeGone
    | PodGone
    | PodPlaced
    | NamespaceChanged
    | StorageChanged
    | DevicesChanged
)
