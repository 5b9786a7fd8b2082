"""NodeResourcesFit: LeastAllocated, the emptier the better, is the default; a configuration may ask
for MostAllocated or RequestedToCapacityRatio, and for other resources than CPU and memory."""

from collections.abc import Mapping, Sequence

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

STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_SHAPE_POINTS = 10  # the most that a point of a shape may give


def allocation(
    strategy: str, resources: Mapping[str, int], shape: Sequence[tuple[int, int]] = ()
) -> Score:
    """By the share of each resource that would be in use, weighted; `shape`: (percent, 0..10)."""
    at = [percent for percent, _ in shape]
    gives = [points * MOST_POINTS // _SHAPE_POINTS for _, points in shape]

    def of_share(requested: IntArray, capacity: IntArray) -> IntArray:
        fits = requested <= capacity
        whole = np.maximum(capacity, 1)
        match strategy:
            case "LeastAllocated":
                return np.where(fits, (capacity - requested) * MOST_POINTS // whole, 0)
            case "MostAllocated":
                return np.minimum(requested, capacity) * MOST_POINTS // whole
            case _:
                percent = np.where(fits, requested * 100 // whole, 100)
                return np.interp(percent, at, gives).astype(np.int64)

    def weighed(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
        total = np.zeros(len(nodes), np.int64)
        weights = np.zeros(len(nodes), np.int64)
        for name, weight in resources.items():
            capacity = nodes.allocatable.get(name)
            if capacity is not None:
                requested = _requested(name, pod, nodes)
                there = capacity > 0
                total += np.where(there, weight * of_share(requested, capacity), 0)
                weights += weight * there
        return total // np.maximum(weights, 1)

    return Score("NodeResourcesFit", weighed)


def _requested(name: str, pod: PodShape, nodes: Snapshot) -> IntArray:
    """With the defaults for containers that request none, as upstream scores."""
    if name == CPU:
        return nodes.scored_cpu + pod.usage.scored_cpu
    if name == MEMORY:
        return nodes.scored_memory + pod.usage.scored_memory
    return nodes.requested[name] + dict(pod.usage.requests).get(name, 0)
