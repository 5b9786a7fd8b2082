import pytest
from hypothesis import given, settings

from sampan.api.rules.node_selectors import any_matches
from sampan.api.rules.tolerations import keeps_away, taints_of
from sampan.scheduler.filters.pod_topology_spread import NO_LABEL, POD_TOPOLOGY_SPREAD, SKEWED
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.pod_terms import selector_of, selects
from tests.support.generators.random_clusters import crowds, neighbours, snapshot_of


def labels(obj):
    return obj["metadata"]["labels"]


def means(constraint, owner, pod):
    if constraint["labelSelector"] is None:
        return False
    for key in constraint.get("matchLabelKeys", []):
        if key in labels(owner) and labels(pod).get(key) != labels(owner)[key]:
            return False
    return pod["metadata"]["namespace"] == owner["metadata"]["namespace"] and selects(
        selector_of(constraint["labelSelector"]), labels(pod)
    )


def is_counted(constraint, pod, node):
    shape = pod_info_of(pod).shape
    if constraint.get("nodeAffinityPolicy") != "Ignore":
        chosen = pod["spec"]["nodeSelector"].items()
        if any(labels(node).get(key) != value for key, value in chosen):
            return False
        name = node["metadata"]["name"]
        if shape.required is not None and not any_matches(shape.required, name, labels(node)):
            return False
    if constraint.get("nodeTaintsPolicy") == "Honor":
        return not keeps_away(shape.tolerations, taints_of(node))
    return True


def domain_counts(constraint, constraints, pod, cluster):
    """Domain → matching pods, over the nodes that count."""
    there, placed = cluster
    counts = {}
    for node in there:
        if any(one["topologyKey"] not in labels(node) for one in constraints):
            continue
        if not is_counted(constraint, pod, node):
            continue
        domain = labels(node)[constraint["topologyKey"]]
        on_it = placed[node["metadata"]["name"]]
        matching = [
            other for other in on_it
            if means(constraint, pod, other) and "deletionTimestamp" not in other["metadata"]
        ]  # fmt: skip
        counts[domain] = counts.get(domain, 0) + len(matching)
    return counts


def why_not(pod, node, cluster):
    constraints = [
        one for one in pod["spec"]["topologySpreadConstraints"]
        if one["whenUnsatisfiable"] == "DoNotSchedule"
    ]  # fmt: skip
    for constraint in constraints:
        if constraint["topologyKey"] not in labels(node):
            return NO_LABEL
        counts = domain_counts(constraint, constraints, pod, cluster)
        enough = len(counts) >= constraint.get("minDomains", 1)
        fewest = min(counts.values(), default=0) if enough else 0
        here = counts.get(labels(node)[constraint["topologyKey"]], 0)
        if here + means(constraint, pod, pod) - fewest > constraint["maxSkew"]:
            return SKEWED
    return None


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(crowds(), neighbours(asks=("level",)))
def test_nodes_are_refused_for_the_reasons_of_the_slow_way(cluster, pod):
    nodes, shape = snapshot_of(cluster), pod_info_of(pod).shape
    mask = POD_TOPOLOGY_SPREAD.mask(shape, nodes)
    found = [why_not(pod, node, cluster) for node in cluster[0]]
    if mask is None:
        assert set(found) <= {None}
        return
    assert mask.tolist() == [one is None for one in found]
    reasons = {text: found.count(text) for text in set(found) - {None}}
    assert POD_TOPOLOGY_SPREAD.reasons(shape, nodes, ~mask) == reasons
    hopeless = POD_TOPOLOGY_SPREAD.unresolvable(shape, nodes, ~mask)
    assert hopeless.tolist() == [one == NO_LABEL for one in found]
