"""NodeResourcesBalancedAllocation: CPU and memory should be used up at the same pace.

Pods that request neither are left out, as upstream: they would all go to one node.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.requests import CPU, MEMORY
from sampan.scheduler.model.rule_scope import Depends
from sampan.scheduler.scores.node_resources_fit import is_left_out
from sampan.scheduler.scores.rule import MOST_POINTS, Score


def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
    wanted = dict(pod.usage.requests)
    if CPU not in wanted and MEMORY not in wanted:
        return None
    if CPU not in nodes.allocatable or MEMORY not in nodes.allocatable:
        return np.full(len(nodes), MOST_POINTS, np.int64)
    apart = np.abs(_share(CPU, wanted, nodes) - _share(MEMORY, wanted, nodes)) / 2
    # With only one of the two on a node there is nothing to balance.
    both = (nodes.allocatable[CPU] > 0) & (nodes.allocatable[MEMORY] > 0)
    return ((1 - np.where(both, apart, 0.0)) * MOST_POINTS).astype(np.int64)


def points_at(pod: PodShape, nodes: Snapshot, at: int) -> int:
    wanted = dict(pod.usage.requests)
    if CPU not in wanted and MEMORY not in wanted:
        return 0
    if CPU not in nodes.allocatable or MEMORY not in nodes.allocatable:
        return MOST_POINTS
    shares = []
    for name in (CPU, MEMORY):
        allocatable = nodes.allocatable[name].item(at)
        if not allocatable:
            return MOST_POINTS
        requested = nodes.requested[name].item(at) + wanted.get(name, 0)
        # As floats first: that is how the columns are divided.
        shares.append(min(float(requested) / float(allocatable), 1.0))
    return int((1 - abs(shares[0] - shares[1]) / 2) * MOST_POINTS)


def _share(name: str, wanted: dict[str, int], nodes: Snapshot) -> NDArray[np.float64]:
    requested = nodes.requested[name] + wanted.get(name, 0)
    return np.minimum(requested / np.maximum(nodes.allocatable[name], 1), 1.0)


BALANCED_ALLOCATION = Score("NodeResourcesBalancedAllocation", points, Depends.PLACE, points_at)


def balancing(resources: Sequence[str]) -> Score:
    """NodeResourcesBalancedAllocationArgs: other resources than these two."""

    def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
        wanted = dict(pod.usage.requests)
        known = [
            name for name in resources if name in nodes.allocatable and not is_left_out(name, pod)
        ]
        if not any(name in wanted for name in resources):
            return None
        if not known:
            return np.full(len(nodes), MOST_POINTS, np.int64)
        there = np.stack([nodes.allocatable[name] > 0 for name in known])
        shares = np.where(there, np.stack([_share(name, wanted, nodes) for name in known]), 0.0)
        count = np.maximum(there.sum(axis=0), 1)
        mean = shares.sum(axis=0) / count
        apart: NDArray[np.float64] = np.sqrt(
            (np.where(there, shares - mean, 0.0) ** 2).sum(axis=0) / count
        )
        return ((1 - apart) * MOST_POINTS).astype(np.int64)

    return Score("NodeResourcesBalancedAllocation", points)
