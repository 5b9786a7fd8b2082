"""NodeVolumeLimits: a CSI driver attaches only so many volumes to a node.

The work is by nodes that have a limit for one of the pod's drivers, not by all nodes.
"""

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, always_resolvable, one_reason
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.pod_info import PodShape


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    wanted = set(nodes.volumes.csi_of(pod.claims))
    if not wanted:
        return None
    drivers = {driver for driver, _ in wanted}
    allowed: BoolArray = np.ones(len(nodes), np.bool_)
    for node, limits in nodes.volumes.limits.items():
        at = nodes.at.get(node)
        if at is None or not drivers & limits.keys():
            continue
        there = {
            handle
            for claim in nodes.claims_on.get(node, {})
            for handle in nodes.volumes.csi_of((claim,))
        }
        for driver in drivers & limits.keys():
            together = sum(item == driver for item, _ in wanted | there)
            if together > limits[driver] and any(item[0] == driver for item in wanted - there):
                allowed[at] = False
    return allowed


NODE_VOLUME_LIMITS = Filter(
    "NodeVolumeLimits", mask, one_reason("node(s) exceed max volume count"), always_resolvable
)
