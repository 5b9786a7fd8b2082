"""NodeAffinity: the weights of the preferred terms that a node matches."""

import numpy as np

from sampan.api.rules.node_selectors import Term
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.node_masks import term_mask
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends
from sampan.scheduler.scores.rule import Score, normalize


def liking(added: tuple[tuple[int, Term], ...] = ()) -> Score:
    """`added`: what the profile prefers for every pod (NodeAffinityArgs.addedAffinity)."""

    def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
        if not pod.preferred and not added:
            return None
        raw = np.zeros(len(nodes), np.int64)
        for weight, term in (*added, *pod.preferred):
            raw += weight * term_mask(term, nodes)
        return normalize(raw, feasible, fewest_is_best=False)

    return Score("NodeAffinity", points, Depends.NODES)


PREFERRED_NODE_AFFINITY = liking()
