import pytest
from hypothesis import given, settings

from sampan.scheduler.decision.decide import Refused, filter_nodes, refused_beforehand
from sampan.scheduler.filters.node_affinity import NODE_AFFINITY
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.support.generators.random_clusters import clusters, pods, snapshot_of
from tests.support.generators.storage_objects import node


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


def bound_to(*terms):
    """As the pods of a DaemonSet are; each term: the names of its fields."""
    fields = [
        [{"key": "metadata.name", "operator": "In", "values": names} for names in term]
        for term in terms
    ]
    required = {"nodeSelectorTerms": [{"matchFields": those} for those in fields]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    written = {"metadata": {"name": "p"}, "spec": {"containers": [], "affinity": affinity}}
    return pod_info_of(written).shape


def test_nodes_that_the_pod_does_not_name_are_said_to_be_left_out_by_the_plugin():
    nodes = snapshot_of(([node(number, "a") for number in range(3)], {}))
    feasible, refusals = filter_nodes(bound_to([["n1", "gone"]]), nodes, DEFAULT_PROFILE)
    assert feasible.tolist() == [False, True, False]
    said = [(one.rule, one.reasons) for one in refusals]
    assert said == [("NodeAffinity", (("node(s) didn't satisfy plugin(s) [NodeAffinity]", 2),))]


def test_terms_that_name_no_node_in_common_refuse_the_pod_before_any_is_looked_at():
    nodes = snapshot_of(([node(number, "a") for number in range(2)], {}))
    conflict = bound_to([["n0"], ["n1"]])
    refused = refused_beforehand(conflict, nodes, DEFAULT_PROFILE)
    assert isinstance(refused, Refused)
    assert refused.beforehand == "pod affinity terms conflict"
    assert refused_beforehand(bound_to([["n0"]]), nodes, DEFAULT_PROFILE) is None
    one_of_two = bound_to([["n0"], ["n1"]], [["n1"]])
    assert refused_beforehand(one_of_two, nodes, DEFAULT_PROFILE) is None
