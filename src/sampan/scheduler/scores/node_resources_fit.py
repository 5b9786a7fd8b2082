"""NodeResourcesFit: LeastAllocated, the emptier the better, is the default; a configuration may ask
for MostAllocated or RequestedToCapacityRatio, and for other resources than CPU and memory."""

from collections.abc import Mapping, Sequence

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.requests import CPU, MEMORY, STORAGE
from sampan.scheduler.model.rule_scope import Depends
from sampan.scheduler.scores.rule import MOST_POINTS, Score, points_of_percent


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


def allocation(
    strategy: str, resources: Mapping[str, int], shape: Sequence[tuple[int, int]] = ()
) -> Score:
    """By the share of each resource that would be in use, weighted; `shape`: (percent, 0..10)."""
    by_ratio = strategy == "RequestedToCapacityRatio"
    of_percent = points_of_percent(shape) if by_ratio else None

    def of_share(requested: IntArray, capacity: IntArray) -> IntArray:
        fits = requested <= capacity
        whole = np.maximum(capacity, 1)
        if of_percent is not None:
            return of_percent[np.where(fits, requested * 100 // whole, 100)]
        if strategy == "MostAllocated":
            return np.minimum(requested, capacity) * MOST_POINTS // whole
        return np.where(fits, (capacity - requested) * MOST_POINTS // whole, 0)

    def weighed(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
        total = np.zeros(len(nodes), np.int64)
        weights = np.zeros(len(nodes), np.int64)
        for name, weight in resources.items():
            capacity = nodes.allocatable.get(name)
            if capacity is None or is_left_out(name, pod):
                continue
            points = of_share(_requests(name, pod, nodes), capacity)
            # As upstream: by ratio, what gives no points does not count at all.
            there = (capacity > 0) & (points > 0) if by_ratio else capacity > 0
            total += np.where(there, weight * points, 0)
            weights += weight * there
        if by_ratio:
            return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)
        return total // np.maximum(weights, 1)

    return Score("NodeResourcesFit", weighed)


def is_left_out(name: str, pod: PodShape) -> bool:
    """As upstream: resources of devices count only for pods that ask for them."""
    return name not in (CPU, MEMORY, STORAGE) and name not in dict(pod.usage.requests)


def _requests(name: str, pod: PodShape, nodes: Snapshot) -> IntArray:
    """With the defaults for containers that request none, as upstream scores."""
    if name == CPU:
        return nodes.scored_cpu + pod.usage.scored_cpu
    if name == MEMORY:
        return nodes.scored_memory + pod.usage.scored_memory
    return nodes.requested[name] + dict(pod.usage.requests).get(name, 0)
