"""PodTopologySpread: among the nodes that remain, the emptier domains are better."""

import math

import numpy as np
from numpy.typing import NDArray

from sampan.scheduler.cache.default_spread import HOSTNAME, SYSTEM_DEFAULTS, Defaults
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.pod_topology_spread import counts, with_every_label
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.pod_terms import Kind, Spread
from sampan.scheduler.model.topology import domain_count, domain_sums, in_domain
from sampan.scheduler.scores.rule import MOST_POINTS, Score


def levelling(defaults: Defaults) -> Score:
    """The rule of a profile; `defaults`: for pods without constraints of their own."""

    def points(pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
        soft = [item for item in defaults.of(pod, nodes) if not item.hard]
        if not soft:
            return None
        every = defaults.need_every_label(pod)
        there = with_every_label(soft, nodes) if every else np.ones(len(nodes), np.bool_)
        scored = feasible & there if every else feasible
        if not scored.any():
            return None
        crowd = np.zeros(len(nodes), np.float64)
        for constraint in soft:
            crowd += _crowd(constraint, pod, nodes, there, scored)
        points = _emptier_is_better(crowd, scored)
        return np.where(there, points, 0) if every else points

    return Score("PodTopologySpread", points)


def _crowd(
    constraint: Spread, pod: PodShape, nodes: Snapshot, there: BoolArray, scored: BoolArray
) -> NDArray[np.float64] | float:
    domains = nodes.label(constraint.topology_key)
    labelled = in_domain(domains)
    if not labelled.any():
        return 0.0  # no zones, say: nothing to count
    pods = nodes.pod_count(Kind((constraint.selector,), with_terminating=False))
    if constraint.topology_key == HOSTNAME:
        sums, size = pods, int(np.count_nonzero(scored))
    else:
        counted = counts(constraint, pod, nodes, there)
        sums = domain_sums(domains, np.where(counted, pods, 0))
        # Nodes without the label, where they take part, are a domain more.
        size = domain_count(domains, scored)
    # Few domains must not count for less than many (upstream's normalizing weight).
    crowd = sums.astype(np.float64) * math.log(size + 2) + (constraint.max_skew - 1)
    return crowd if labelled.all() else np.where(labelled, crowd, 0.0)


def _emptier_is_better(crowd: NDArray[np.float64], scored: BoolArray) -> IntArray:
    """Crowds are small numbers: each is divided once, not once for each node. What the nodes get
    that are not scored is nobody's affair."""
    raw = (crowd + 0.5).astype(np.int64)  # never negative: that is the floor
    those = raw if scored.all() else raw[scored]
    least, most = int(those.min()), int(those.max())
    if most == 0:
        return np.full(len(raw), MOST_POINTS, np.int64)
    if most >= len(raw):
        return MOST_POINTS * (most + least - raw) // most
    by_crowd = MOST_POINTS * (most + least - np.arange(most + 1)) // most
    return by_crowd.take(raw, mode="clip")


PREFERRED_SPREAD = levelling(SYSTEM_DEFAULTS)
