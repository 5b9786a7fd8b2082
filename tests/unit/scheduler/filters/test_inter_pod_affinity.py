import pytest
from hypothesis import given, settings

from sampan.scheduler.filters.inter_pod_affinity import (
    AFFINITY,
    ANTI_AFFINITY,
    INTER_POD_AFFINITY,
    OTHERS_ANTI_AFFINITY,
)
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.pod_terms import selector_of, selects
from tests.support.generators.random_clusters import NAMESPACES, crowds, neighbours, snapshot_of


def labels(obj):
    return obj["metadata"]["labels"]


def required(pod, kind):
    terms = pod["spec"]["affinity"].get(kind, {})
    return terms.get("requiredDuringSchedulingIgnoredDuringExecution", [])


def term_selects(term, owner, pod):
    """Whether the term of `owner` means `pod`."""
    namespace = pod["metadata"]["namespace"]
    wanted = term.get("namespaceSelector")
    named = term.get("namespaces", [])
    if not named and wanted is None:
        named = [owner["metadata"]["namespace"]]
    if namespace not in named and not selects(selector_of(wanted), NAMESPACES[namespace]):
        return False
    if term["labelSelector"] is None:
        return False
    return selects(selector_of(term["labelSelector"]), labels(pod))


def everywhere(cluster):
    there, placed = cluster
    for node in there:
        for pod in placed[node["metadata"]["name"]]:
            yield node, pod


def same_domain(term, one, other):
    key = term["topologyKey"]
    return key in labels(one) and labels(one)[key] == labels(other).get(key)


def why_not(pod, node, cluster):
    terms = required(pod, "podAffinity")
    wanted = [
        (other, there)
        for other, there in everywhere(cluster)
        if terms and all(term_selects(term, pod, there) for term in terms)
    ]
    counted = any(term["topologyKey"] in labels(other) for other, _ in wanted for term in terms)
    first_of_its_kind = not counted and all(term_selects(term, pod, pod) for term in terms)
    for term in terms:
        if term["topologyKey"] not in labels(node):
            return AFFINITY
        if not first_of_its_kind and not any(same_domain(term, node, other) for other, _ in wanted):
            return AFFINITY
    for term in required(pod, "podAntiAffinity"):
        for other, there in everywhere(cluster):
            if term_selects(term, pod, there) and same_domain(term, node, other):
                return ANTI_AFFINITY
    for other, there in everywhere(cluster):
        for term in required(there, "podAntiAffinity"):
            if term_selects(term, there, pod) and same_domain(term, node, other):
                return OTHERS_ANTI_AFFINITY
    return None


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(crowds(), neighbours(asks=("near",)) | neighbours(asks=("apart",)))
def test_nodes_are_refused_for_the_reasons_of_the_slow_way(cluster, pod):
    nodes, shape = snapshot_of(cluster), pod_info_of(pod).shape
    mask = INTER_POD_AFFINITY.mask(shape, nodes)
    found = [why_not(pod, node, cluster) for node in cluster[0]]
    if mask is None:
        assert set(found) <= {None}
        return
    assert mask.tolist() == [one is None for one in found]
    reasons = {text: found.count(text) for text in set(found) - {None}}
    assert INTER_POD_AFFINITY.reasons(shape, nodes, ~mask) == reasons
    hopeless = INTER_POD_AFFINITY.unresolvable(shape, nodes, ~mask)
    assert hopeless.tolist() == [one == AFFINITY for one in found]
