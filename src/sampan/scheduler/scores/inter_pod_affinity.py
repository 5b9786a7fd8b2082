"""InterPodAffinity: near those it likes and who like it, away from the others.

Each pod of a domain counts with the term's weight, both ways: the terms of the pod that comes, and
those of the pods that are there.
"""

import numpy as np

from sampan.scheduler.pod_terms import Kind
from sampan.scheduler.rows import PodShape
from sampan.scheduler.scores.rule import MOST_POINTS, Score
from sampan.scheduler.snapshot import BoolArray, IntArray, Snapshot
from sampan.scheduler.topology import domain_sums


def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
    if not pod.demands.preferred and not nodes.carried:
        return None
    raw = np.zeros(len(nodes), np.int64)
    for weight, term in pod.demands.preferred:
        count = nodes.pod_count(Kind((term.selector,)))
        raw += weight * domain_sums(nodes.label(term.topology_key), count)
    namespace_labels, labels = nodes.namespaces.get(pod.namespace, {}), dict(pod.labels)
    for carried in nodes.carried:
        term = carried.term
        if carried.weight and term.selector.matches(pod.namespace, namespace_labels, labels):
            near = domain_sums(nodes.label(term.topology_key), nodes.carriers(carried))
            raw += carried.weight * near
    least, most = int(raw[feasible].min()), int(raw[feasible].max())
    if least == most:
        return None  # the same points for every node
    share = (raw - least) / (most - least)
    return np.clip(MOST_POINTS * share, 0, MOST_POINTS).astype(np.int64)


PREFERRED_POD_AFFINITY = Score("InterPodAffinity", points)
