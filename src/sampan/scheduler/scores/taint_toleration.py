"""TaintToleration: the fewer PreferNoSchedule taints that the pod does not tolerate, the better."""

import numpy as np

from sampan.api.rules.tolerations import PREFER_NO_SCHEDULE, Taint, is_tolerated
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends
from sampan.scheduler.scores.rule import Score, normalize


def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
    counts = {
        taint_set: _disliked_taints(pod, taints) for taint_set, taints in nodes.taint_sets.items()
    }
    if not any(counts.values()):
        return None  # the same points for every node
    table = np.zeros(max(counts) + 1, np.int64)
    table[list(counts)] = list(counts.values())
    return normalize(table[nodes.taint_set], feasible, fewest_is_best=True)


def _disliked_taints(pod: PodShape, taints: frozenset[Taint]) -> int:
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not is_tolerated(pod.tolerations, taint)
        for taint in taints
    )


PREFERRED_TAINTS = Score("TaintToleration", points, Depends.NODES)
