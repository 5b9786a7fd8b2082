"""NodeName: a pod that names its node goes there or nowhere."""

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, never_resolvable, one_reason
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not pod.node_name:
        return None
    allowed: BoolArray = np.zeros(len(nodes), np.bool_)
    at = nodes.at.get(pod.node_name)
    if at is not None:
        allowed[at] = True
    return allowed


NODE_NAME = Filter(
    "NodeName",
    mask,
    one_reason("node(s) didn't match the requested node name"),
    never_resolvable,
    Depends.NODES,
)
