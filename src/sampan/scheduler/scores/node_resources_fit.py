"""NodeResourcesFit, LeastAllocated: the emptier the better; CPU and memory count alike."""

import numpy as np

from sampan.scheduler.depends import Depends
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


def points_at(pod: PodShape, nodes: Snapshot, at: int) -> int:
    total = weights = 0
    for name, requested in (
        (CPU, nodes.scored_cpu.item(at) + pod.usage.scored_cpu),
        (MEMORY, nodes.scored_memory.item(at) + pod.usage.scored_memory),
    ):
        capacity = nodes.allocatable[name].item(at) if name in nodes.allocatable else 0
        if capacity:
            total += max(capacity - requested, 0) * MOST_POINTS // capacity
            weights += 1
    return total // max(weights, 1)


LEAST_ALLOCATED = Score("NodeResourcesFit", points, Depends.PLACE, points_at)
