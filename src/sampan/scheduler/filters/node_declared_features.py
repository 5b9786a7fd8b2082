"""NodeDeclaredFeatures: what the pod needs of the node agent, the node must declare.

Invariant: where the gate of its name is off, it refuses no node, whatever a configuration says.
"""

import numpy as np

from sampan.api import features
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, never_resolvable, one_reason
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not pod.features or not features.enabled("NodeDeclaredFeatures"):
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
