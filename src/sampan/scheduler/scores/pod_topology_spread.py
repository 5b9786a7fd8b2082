"""PodTopologySpread: among the nodes that remain, the emptier domains are better."""

import math

import numpy as np

from sampan.scheduler.filters.pod_topology_spread import counts, with_every_label
from sampan.scheduler.pod_terms import Kind
from sampan.scheduler.rows import PodShape
from sampan.scheduler.scores.rule import MOST_POINTS, Score
from sampan.scheduler.snapshot import BoolArray, IntArray, Snapshot
from sampan.scheduler.topology import domain_count, domain_sums

HOSTNAME = "kubernetes.io/hostname"


def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
    soft = [one for one in pod.demands.spread if not one.hard]
    if not soft:
        return None
    labelled = with_every_label(soft, nodes)
    scored = feasible & labelled
    if not scored.any():
        return None
    crowd = np.zeros(len(nodes), np.float64)
    for constraint in soft:
        domains = nodes.label(constraint.topology_key)
        pods = nodes.pod_count(Kind((constraint.selector,), with_terminating=False))
        if constraint.topology_key == HOSTNAME:
            sums, size = pods, int(scored.sum())
        else:
            counted = counts(constraint, pod, nodes, labelled)
            sums = domain_sums(domains, np.where(counted, pods, 0))
            size = domain_count(domains, scored)
        # Few domains must not count for less than many (upstream's normalizing weight).
        crowd += sums * math.log(size + 2) + (constraint.max_skew - 1)
    raw = np.floor(crowd + 0.5).astype(np.int64)
    least, most = int(raw[scored].min()), int(raw[scored].max())
    spread = (
        np.full(len(nodes), MOST_POINTS, np.int64)
        if most == 0
        else MOST_POINTS * (most + least - raw) // most
    )
    return np.where(labelled, spread, 0)


PREFERRED_SPREAD = Score("PodTopologySpread", points)
