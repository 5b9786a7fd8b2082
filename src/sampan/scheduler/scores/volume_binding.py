"""VolumeBinding: how much of a node's storage a pod's claims would take, class by class.

By the volumes that they would be bound to; where there is none, by the capacity that drivers report
of what they would provision there.
"""

from collections.abc import Sequence

import numpy as np

from sampan.api import features
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.volume_binding import is_tracked, sufficient, taken_volumes
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.scores.rule import Score, points_of_percent

_MOST_LEFT = ((0, 10), (100, 0))  # upstream's default shape


class _Storage:
    """Of one class, by node: the bytes that are wanted and that there are."""

    def __init__(self, count: int) -> None:
        self.wanted = np.zeros(count, np.int64)
        self.there = np.zeros(count, np.int64)
        self.counts: BoolArray = np.zeros(count, np.bool_)

    def take(self, nodes: BoolArray, size: int) -> None:
        self.wanted[nodes] += size
        self.counts |= nodes


def capacity_scoring(shape: Sequence[tuple[int, int]] = _MOST_LEFT) -> Score:
    of_percent = points_of_percent(shape)

    def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
        if not pod.claims or not features.enabled("StorageCapacityScoring"):
            return None
        bound: dict[str, _Storage] = {}
        made: dict[str, _Storage] = {}
        for claim, taken, left in taken_volumes(pod, nodes):
            for volume, takes in taken:
                storage = bound.setdefault(volume.storage_class, _Storage(len(nodes)))
                storage.take(takes, claim.size)
                storage.there[takes] += volume.size
            if is_tracked(claim, nodes):
                storage = made.setdefault(claim.storage_class, _Storage(len(nodes)))
                for capacity, reach in sufficient(claim, nodes):
                    chosen = left & reach
                    storage.take(chosen, claim.size)
                    storage.there[chosen] = capacity.whole  # not their sum: it is one pool
                    left = left & ~chosen
        # As upstream: where a node has any volume to bind, what is provisioned does not count.
        binds: BoolArray = np.zeros(len(nodes), np.bool_)
        for storage in bound.values():
            binds |= storage.counts
        return np.where(binds, _mean(bound, of_percent, nodes), _mean(made, of_percent, nodes))

    return Score("VolumeBinding", points)


def _mean(classes: dict[str, _Storage], of_percent: IntArray, nodes: Snapshot) -> IntArray:
    """All classes weigh the same."""
    total = np.zeros(len(nodes), np.int64)
    count = np.zeros(len(nodes), np.int64)
    for storage in classes.values():
        is_full = (storage.there == 0) | (storage.wanted > storage.there)
        percent = storage.wanted * 100 // np.maximum(storage.there, 1)
        points = of_percent[np.where(is_full, 100, np.minimum(percent, 100))]
        total += np.where(storage.counts, points, 0)
        count += storage.counts
    return np.floor(total / np.maximum(count, 1) + 0.5).astype(np.int64)


FREE_STORAGE = capacity_scoring()
