"""InterPodAffinity: near those it likes and who like it, away from the others.

Each pod of a domain counts with the term's weight, both ways: the terms of the pod that comes, and
those of the pods that are there.
"""

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.pod_terms import Kind
from sampan.scheduler.model.topology import domain_sums
from sampan.scheduler.scores.rule import MOST_POINTS, Score


def nearness(hard_weight: int = 1, *, ignores_others_wishes: bool = False) -> Score:
    """InterPodAffinityArgs: `hard_weight` is what a pod's required affinity is worth to those who
    would come to it; pods without wishes of their own may be spared the wishes of others."""

    def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
        carried_terms = nodes.carried(pod.namespace)
        if not pod.demands.preferred and (ignores_others_wishes or not carried_terms):
            return None
        raw = np.zeros(len(nodes), np.int64)
        for weight, term in pod.demands.preferred:
            if nodes.has_label(term.topology_key):
                count = nodes.pod_count(Kind((term.selector,)))
                raw += weight * domain_sums(nodes.label(term.topology_key), count)
        namespace_labels, labels = nodes.namespaces.get(pod.namespace, {}), dict(pod.labels)
        for carried in carried_terms:
            term, weight = carried.term, hard_weight if carried.attracts else carried.weight
            if weight and term.selector.matches(pod.namespace, namespace_labels, labels):
                near = domain_sums(nodes.label(term.topology_key), nodes.carriers(carried))
                raw += weight * near
        return _scale(raw, feasible)

    return Score("InterPodAffinity", points)


def _scale(raw: IntArray, feasible: BoolArray) -> IntArray | None:
    least, most = int(raw[feasible].min()), int(raw[feasible].max())
    if least == most:
        return None  # the same points for every node
    share = (raw - least) / (most - least)
    return np.clip(MOST_POINTS * share, 0, MOST_POINTS).astype(np.int64)


PREFERRED_POD_AFFINITY = nearness()
