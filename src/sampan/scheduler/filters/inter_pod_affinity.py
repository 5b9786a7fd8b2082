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
    count = nodes.pod_count(Kind(tuple(term.selector for term in terms)))
    has_keys: BoolArray = np.ones(len(nodes), np.bool_)
    near: BoolArray = np.ones(len(nodes), np.bool_)
    anywhere = False
    for term in terms:
        domains = nodes.label(term.topology_key)
        sums = domain_sums(domains, count)
        anywhere = anywhere or bool(sums.any())
        has_keys &= in_domain(domains)
        near &= sums > 0
    if not anywhere and all(_matches(term, pod, nodes) for term in terms):
        return has_keys
    return near


def _apart(pod: PodShape, nodes: Snapshot) -> BoolArray:
    apart: BoolArray = np.ones(len(nodes), np.bool_)
    for term in pod.demands.anti_affinity:
        count = nodes.pod_count(Kind((term.selector,)))
        apart &= domain_sums(nodes.label(term.topology_key), count) == 0
    return apart


def _unopposed_nodes(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    allowed: BoolArray | None = None
    for carried in nodes.carried:
        if carried.forbids and _matches(carried.term, pod, nodes):
            domains = nodes.label(carried.term.topology_key)
            free = domain_sums(domains, nodes.carriers(carried)) == 0
            allowed = free if allowed is None else allowed & free
    return allowed


def _matches(term: PodTerm, pod: PodShape, nodes: Snapshot) -> bool:
    namespace_labels = nodes.namespaces.get(pod.namespace, {})
    return term.selector.matches(pod.namespace, namespace_labels, dict(pod.labels))


INTER_POD_AFFINITY = Filter("InterPodAffinity", mask, reasons, unresolvable)
