"""TaintToleration: taints NoSchedule and NoExecute must be tolerated.

Nodes share few different sets of taints: each set is judged once, then looked up per node.
"""

import numpy as np

from sampan.api.rules.tolerations import keeps_away
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, never_resolvable, one_reason
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    refused = [
        taint_set
        for taint_set, taints in nodes.taint_sets.items()
        if taints and keeps_away(pod.tolerations, taints)
    ]
    if not refused:
        return None
    allowed: BoolArray = np.ones(max(nodes.taint_sets) + 1, np.bool_)
    allowed[refused] = False
    return allowed[nodes.taint_set]


TAINT_TOLERATION = Filter(
    "TaintToleration",
    mask,
    one_reason("node(s) had untolerated taint(s)"),
    never_resolvable,
    Depends.NODES,
)
