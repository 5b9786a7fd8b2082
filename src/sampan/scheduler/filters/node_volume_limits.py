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
        used = {
            handle
            for claim in nodes.claims_on.get(node, {})
            for handle in nodes.volumes.csi_of((claim,))
        }
        # As upstream: what is still attached counts, too, even where the pod wants just that.
        there = used | set(nodes.volumes.attached_to(node))
        for driver in drivers & limits.keys():
            new = sum(item == driver for item, _ in wanted - used)
            if new and new + sum(item == driver for item, _ in there) > limits[driver]:
                allowed[at] = False
    return allowed


NODE_VOLUME_LIMITS = Filter(
    "NodeVolumeLimits", mask, one_reason("node(s) exceed max volume count"), always_resolvable
)
