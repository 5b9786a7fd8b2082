"""NodeUnschedulable: cordoned nodes take only pods that tolerate the cordon's taint."""

from sampan.api.rules.tolerations import UNSCHEDULABLE, is_tolerated
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, never_resolvable, one_reason
from sampan.scheduler.model.arrays import BoolArray, any_set
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not any_set(nodes.unschedulable) or is_tolerated(pod.tolerations, UNSCHEDULABLE):
        return None
    return ~nodes.unschedulable


NODE_UNSCHEDULABLE = Filter(
    "NodeUnschedulable",
    mask,
    one_reason("node(s) were unschedulable"),
    never_resolvable,
    Depends.NODES,
)
