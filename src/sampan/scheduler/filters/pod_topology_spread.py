"""PodTopologySpread: no domain may be too far ahead of the emptiest one."""

import numpy as np

from sampan.scheduler.cache.default_spread import SYSTEM_DEFAULTS, Defaults
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters import node_affinity, taint_toleration
from sampan.scheduler.filters.rule import Filter
from sampan.scheduler.model.arrays import BoolArray, any_set
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.pod_terms import Kind, Spread
from sampan.scheduler.model.topology import domain_count, domain_sums, in_domain

SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{SKEWED} (missing required label)"


def evenness(defaults: Defaults) -> Filter:
    """The rule of a profile; `defaults`: for pods without constraints of their own."""

    def hard_of(pod: PodShape, nodes: Snapshot) -> list[Spread]:
        return [item for item in defaults.of(pod, nodes) if item.hard]

    def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
        hard = hard_of(pod, nodes)
        if not hard:
            return None
        labelled = with_every_label(hard, nodes)
        allowed = labelled.copy()
        for constraint in hard if labelled.any() else ():
            allowed &= _within_skew(constraint, pod, nodes, labelled)
        return allowed

    def refused_by_label(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> BoolArray:
        """The constraints are looked at in their order: a skew that is found first is the
        reason."""
        hard = hard_of(pod, nodes)
        labelled = with_every_label(hard, nodes)
        missing: BoolArray = np.zeros(len(nodes), np.bool_)
        undecided = refused
        for constraint in hard:
            there = in_domain(nodes.label(constraint.topology_key))
            missing |= undecided & ~there
            undecided = undecided & there
            if not undecided.any():
                break
            undecided = undecided & _within_skew(constraint, pod, nodes, labelled)
        return missing

    def reasons(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> dict[str, int]:
        missing = refused_by_label(pod, nodes, refused)
        found = {NO_LABEL: int(missing.sum()), SKEWED: int((refused & ~missing).sum())}
        return {text: count for text, count in found.items() if count}

    return Filter("PodTopologySpread", mask, reasons, refused_by_label)


def with_every_label(constraints: list[Spread], nodes: Snapshot) -> BoolArray:
    keys = dict.fromkeys(constraint.topology_key for constraint in constraints)
    if not all(nodes.has_label(key) for key in keys):
        return np.zeros(len(nodes), np.bool_)
    there: BoolArray = np.ones(len(nodes), np.bool_)
    for key in keys:
        there &= in_domain(nodes.label(key))
    return there


def counts(constraint: Spread, pod: PodShape, nodes: Snapshot, among: BoolArray) -> BoolArray:
    """Of `among`, the nodes that the constraint takes into account."""
    for honored, rule in (
        (constraint.honor_affinity, node_affinity.mask),
        (constraint.honor_taints, taint_toleration.mask),
    ):
        allowed = rule(pod, nodes) if honored else None
        if allowed is not None:
            among = among & allowed
    return among


def counts_itself(constraint: Spread, pod: PodShape) -> bool:
    return constraint.selector.matches(pod.namespace, {}, dict(pod.labels))


def _within_skew(
    constraint: Spread, pod: PodShape, nodes: Snapshot, labelled: BoolArray
) -> BoolArray:
    domains = nodes.label(constraint.topology_key)
    counted = counts(constraint, pod, nodes, labelled)
    pods = nodes.pod_count(Kind((constraint.selector,), with_terminating=False))
    sums = domain_sums(domains, np.where(counted, pods, 0))
    fewest = 0
    if any_set(counted) and domain_count(domains, counted) >= constraint.min_domains:
        fewest = int(sums[counted].min())
    return sums + counts_itself(constraint, pod) - fewest <= constraint.max_skew


POD_TOPOLOGY_SPREAD = evenness(SYSTEM_DEFAULTS)
