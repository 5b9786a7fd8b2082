"""InterPodAffinity: near the pods that it needs, away from those that it or they cannot bear."""

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.pod_terms import Kind, PodTerm
from sampan.scheduler.model.topology import domain_sums, in_domain

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
OTHERS_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    allowed: BoolArray | None = None
    for _, part in _parts(pod, nodes):
        allowed = part if allowed is None else allowed & part
    return allowed


def reasons(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> dict[str, int]:
    """Each node counts for the first of the three that refuses it, as upstream."""
    found = {}
    left = refused
    for text, part in _parts(pod, nodes):
        found[text] = int((left & ~part).sum())
        left = left & part
    return {text: count for text, count in found.items() if count}


def unresolvable(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> BoolArray:
    """Removing pods brings no others near."""
    if not pod.demands.affinity:
        return refused & False
    return refused & ~_near(pod, nodes)


def _parts(pod: PodShape, nodes: Snapshot) -> list[tuple[str, BoolArray]]:
    parts = []
    if pod.demands.affinity:
        parts.append((AFFINITY, _near(pod, nodes)))
    if pod.demands.anti_affinity:
        parts.append((ANTI_AFFINITY, _apart(pod, nodes)))
    others = _unopposed_nodes(pod, nodes)
    if others is not None:
        parts.append((OTHERS_ANTI_AFFINITY, others))
    return parts


def _near(pod: PodShape, nodes: Snapshot) -> BoolArray:
    """Every term's domain has a pod that matches all terms; or no pod anywhere does, and the pod
    itself would: then it is the first of its kind, and any domain will do."""
    terms = pod.demands.affinity
    keys = dict.fromkeys(term.topology_key for term in terms)
    if not all(nodes.has_label(key) for key in keys):
        return np.zeros(len(nodes), np.bool_)
    count = nodes.pod_count(Kind(tuple(term.selector for term in terms)))
    has_keys: BoolArray = np.ones(len(nodes), np.bool_)
    near: BoolArray = np.ones(len(nodes), np.bool_)
    anywhere = False
    for key in keys:
        domains = nodes.label(key)
        sums = domain_sums(domains, count)
        anywhere = anywhere or bool(sums.any())
        has_keys &= in_domain(domains)
        near &= sums > 0
    if not anywhere:
        itself = _Met(pod, nodes)
        if all(itself.by(term) for term in terms):
            return has_keys
    return near


def _apart(pod: PodShape, nodes: Snapshot) -> BoolArray:
    apart: BoolArray = np.ones(len(nodes), np.bool_)
    for term in pod.demands.anti_affinity:
        if nodes.has_label(term.topology_key) and apart.any():
            count = nodes.pod_count(Kind((term.selector,)))
            apart &= domain_sums(nodes.label(term.topology_key), count) == 0
    return apart


def _unopposed_nodes(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    allowed: BoolArray | None = None
    those = nodes.carried(pod.namespace)
    met = _Met(pod, nodes) if those else None
    for carried in those:
        if met is not None and carried.forbids and met.by(carried.term):
            domains = nodes.label(carried.term.topology_key)
            free = domain_sums(domains, nodes.carriers(carried)) == 0
            allowed = free if allowed is None else allowed & free
    return allowed


class _Met:
    """Which terms mean the pod."""

    def __init__(self, pod: PodShape, nodes: Snapshot) -> None:
        self._namespace, self._labels = pod.namespace, dict(pod.labels)
        self._namespace_labels = nodes.namespaces.get(pod.namespace, {})

    def by(self, term: PodTerm) -> bool:
        return term.selector.matches(self._namespace, self._namespace_labels, self._labels)


INTER_POD_AFFINITY = Filter("InterPodAffinity", mask, reasons, unresolvable)
