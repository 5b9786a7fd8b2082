"""What a score is, and how raw points become 0..100.

Job: the interface that the files beside this one fill, one rule each.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends

MOST_POINTS = 100
_SHAPE_POINTS = 10  # the most that a point of a shape may give


@dataclass(frozen=True, slots=True)
class Score:
    name: str
    # Points of each node, 0..100, of which only the feasible ones count; None where the rule has
    # nothing to say about the pod.
    points: Callable[[PodShape, Snapshot, BoolArray], IntArray | None]
    depends: Depends = Depends.EVERYTHING  # besides on which nodes are feasible
    # For Depends.PLACE: the points of one node. They do not depend on which are feasible.
    at: Callable[[PodShape, Snapshot, int], int] | None = None


def points_of_percent(shape: Sequence[tuple[int, int]]) -> IntArray:
    """Of each percentage, by a shape of (percent, 0..10): straight lines between its points, flat
    beyond, in whole numbers that are cut off towards zero, as Go divides."""
    scaled = [(percent, points * MOST_POINTS // _SHAPE_POINTS) for percent, points in shape]
    found = np.full(101, scaled[-1][1], np.int64)
    found[: scaled[0][0]] = scaled[0][1]
    for (start, before), (end, after) in pairwise(scaled):
        for percent in range(start, end):
            found[percent] = before + int((after - before) * (percent - start) / (end - start))
    return found


def normalize(raw: IntArray, feasible: BoolArray, *, fewest_is_best: bool) -> IntArray:
    """As helper.DefaultNormalizeScore: the most of all feasible nodes becomes 100."""
    most = int(raw[feasible].max(initial=0))
    if most == 0:
        return np.full(len(raw), MOST_POINTS if fewest_is_best else 0, np.int64)
    points = raw * MOST_POINTS // most
    return MOST_POINTS - points if fewest_is_best else points
