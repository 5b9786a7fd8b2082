"""NodeResourcesFit, LeastAllocated: the emptier the better; CPU and memory count alike."""

import numpy as np

from sampan.scheduler.requests import CPU, MEMORY
from sampan.scheduler.rows import PodShape
from sampan.scheduler.scores.rule import MOST_POINTS, Score
from sampan.scheduler.snapshot import BoolArray, IntArray, Snapshot


def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
    total = np.zeros(len(nodes), np.int64)
    weights = np.zeros(len(nodes), np.int64)
    for name, requested in (
        (CPU, nodes.scored_cpu + pod.usage.scored_cpu),
        (MEMORY, nodes.scored_memory + pod.usage.scored_memory),
    ):
        capacity = nodes.allocatable.get(name)
        if capacity is None:
            continue
        free = np.maximum(capacity - requested, 0)
        total += free * MOST_POINTS // np.maximum(capacity, 1)
        weights += capacity > 0
    return total // np.maximum(weights, 1)


LEAST_ALLOCATED = Score("NodeResourcesFit", points)
