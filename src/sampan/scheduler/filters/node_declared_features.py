"""NodeDeclaredFeatures: what the pod needs of the node agent, the node must declare.

Off unless a configuration enables it: upstream has it behind a gate of that name, off in v1.35.
"""

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, never_resolvable, one_reason
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not pod.features:
        return None
    allowed: BoolArray = np.ones(len(nodes), np.bool_)
    for name in pod.features:
        allowed &= nodes.declares(name) > 0
    return allowed


NODE_DECLARED_FEATURES = Filter(
    "NodeDeclaredFeatures",
    mask,
    one_reason("node(s) didn't match Pod's required features"),
    never_resolvable,
    Depends.NODES,
)
