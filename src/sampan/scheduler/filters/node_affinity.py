"""NodeAffinity: nodeSelector, and one of the required terms."""

import numpy as np

from sampan.scheduler.depends import Depends
from sampan.scheduler.filters.rule import Filter, never_resolvable, one_reason
from sampan.scheduler.node_masks import label_mask, term_mask
from sampan.scheduler.rows import PodShape
from sampan.scheduler.snapshot import BoolArray, Snapshot


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not pod.selector and pod.required is None:
        return None
    allowed: BoolArray = np.ones(len(nodes), np.bool_)
    for requirement in pod.selector:
        allowed &= label_mask(requirement, nodes)
    if pod.required is not None:
        one_of: BoolArray = np.zeros(len(nodes), np.bool_)
        for term in pod.required:
            one_of |= term_mask(term, nodes)
        allowed &= one_of
    return allowed


NODE_AFFINITY = Filter(
    "NodeAffinity",
    mask,
    one_reason("node(s) didn't match Pod's node affinity/selector"),
    never_resolvable,
    Depends.NODES,
)
