"""NodeUnschedulable: cordoned nodes take only pods that tolerate the cordon's taint."""

from sampan.scheduler.depends import Depends
from sampan.scheduler.filters.rule import Filter, never_resolvable, one_reason
from sampan.scheduler.rows import PodShape
from sampan.scheduler.snapshot import BoolArray, Snapshot, any_set
from sampan.scheduler.tolerations import UNSCHEDULABLE, tolerated


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not any_set(nodes.unschedulable) or tolerated(pod.tolerations, UNSCHEDULABLE):
        return None
    return ~nodes.unschedulable


NODE_UNSCHEDULABLE = Filter(
    "NodeUnschedulable",
    mask,
    one_reason("node(s) were unschedulable"),
    never_resolvable,
    Depends.NODES,
)
