"""ImageLocality: nodes that already have the pod's images, by their size and by how many have them.

Scaling by the share of nodes that have an image keeps one node from drawing all pods (upstream's
"node heating").
"""

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends
from sampan.scheduler.scores.rule import MOST_POINTS, Score

_MEBIBYTE = 1024 * 1024
LEAST_BYTES = 23 * _MEBIBYTE
MOST_BYTES_PER_CONTAINER = 1000 * _MEBIBYTE


def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
    total = np.zeros(len(nodes), np.int64)
    found = False
    for image in pod.images:
        size = nodes.image_bytes(image)
        having = int(np.count_nonzero(size))
        if having:
            total += (size * (having / len(nodes))).astype(np.int64)
            found = True
    if not found:
        return None
    most = MOST_BYTES_PER_CONTAINER * len(pod.images)
    total = np.clip(total, LEAST_BYTES, most)
    return MOST_POINTS * (total - LEAST_BYTES) // (most - LEAST_BYTES)


IMAGE_LOCALITY = Score("ImageLocality", points, Depends.NODES)
