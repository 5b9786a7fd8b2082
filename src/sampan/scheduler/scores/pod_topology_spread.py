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
        there: BoolArray = np.ones(len(nodes), np.bool_)
        if defaults.need_every_label(pod):
            there = with_every_label(soft, nodes)
        scored = feasible & there
        if not scored.any():
            return None
        crowd = np.zeros(len(nodes), np.float64)
        for constraint in soft:
            crowd += _crowd(constraint, pod, nodes, there, scored)
        return np.where(there, _emptier_is_better(crowd, scored), 0)

    return Score("PodTopologySpread", points)


def _crowd(
    constraint: Spread, pod: PodShape, nodes: Snapshot, there: BoolArray, scored: BoolArray
) -> NDArray[np.float64]:
    domains = nodes.label(constraint.topology_key)
    pods = nodes.pod_count(Kind((constraint.selector,), with_terminating=False))
    if constraint.topology_key == HOSTNAME:
        sums, size = pods, int(scored.sum())
    else:
        counted = counts(constraint, pod, nodes, there)
        sums = domain_sums(domains, np.where(counted, pods, 0))
        # Nodes without the label, where they take part, are a domain more.
        size = domain_count(domains, scored)
    # Few domains must not count for less than many (upstream's normalizing weight).
    crowd = sums * math.log(size + 2) + (constraint.max_skew - 1)
    return np.where(in_domain(domains), crowd, 0.0)


def _emptier_is_better(crowd: NDArray[np.float64], scored: BoolArray) -> IntArray:
    raw = np.floor(crowd + 0.5).astype(np.int64)
    least, most = int(raw[scored].min()), int(raw[scored].max())
    if most == 0:
        return np.full(len(raw), MOST_POINTS, np.int64)
    return MOST_POINTS * (most + least - raw) // most


PREFERRED_SPREAD = levelling(SYSTEM_DEFAULTS)
