import pytest
from hypothesis import given, settings

from sampan.scheduler.filters.node_affinity import NODE_AFFINITY
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.testing.generators.random_clusters import clusters, pods, snapshot_of


def requirement_holds(requirement, value):
    operator, values = requirement["operator"], requirement["values"]
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or len(values) != 1 or not value.isdigit() or not values[0].isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def term_matches(term, node):
    labels, name = node["metadata"]["labels"], node["metadata"]["name"]
    expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
    if not expressions and not fields:
        return False
    return all(requirement_holds(one, labels.get(one["key"])) for one in expressions) and all(
        requirement_holds(one, name) for one in fields
    )


def allowed(pod, node):
    labels = node["metadata"]["labels"]
    if any(labels.get(key) != value for key, value in pod["spec"]["nodeSelector"].items()):
        return False
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(term_matches(term, node) for term in required["nodeSelectorTerms"])


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods())
def test_selector_and_required_terms_are_met_exactly_where_the_mask_is_true(cluster, pod):
    mask = NODE_AFFINITY.mask(pod_info_of(pod).shape, snapshot_of(cluster))
    expected = [allowed(pod, node) for node in cluster[0]]
    assert expected == ([True] * len(expected) if mask is None else mask.tolist())
