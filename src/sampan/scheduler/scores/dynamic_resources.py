"""DynamicResources: nodes that have the earlier alternatives of what a pod claims are better."""

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.scores.rule import Score, normalize


def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
    if not pod.devices:
        return None
    raw = np.zeros(len(nodes), np.int64)
    for indices, picked in nodes.devices.found(pod.devices, nodes).by_node:
        raw[list(indices)] = sum(
            request.preference
            for those in picked
            for request in {item.request.name: item.request for item in those}.values()
        )
    if not raw.any():
        return None
    return normalize(raw, feasible, fewest_is_best=False)


PREFERRED_DEVICES = Score("DynamicResources", points)
