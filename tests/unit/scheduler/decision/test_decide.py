import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.decision.decide import Chosen, Refused, decide, filter_nodes, score_nodes
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.support.generators.random_clusters import clusters, pods, snapshot_of


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(with_demands=True), pods(with_demands=True), st.integers())
def test_the_chosen_node_passed_every_filter_and_none_has_more_points(cluster, pod, seed):
    nodes, shape = snapshot_of(cluster), pod_info_of(pod).shape
    decision = decide(shape, nodes, DEFAULT_PROFILE, random.Random(seed))
    masks = [rule.mask(shape, nodes) for rule in DEFAULT_PROFILE.filters]
    feasible = [at for at in range(len(nodes)) if all(mask is None or mask[at] for mask in masks)]
    if not feasible:
        assert isinstance(decision, Refused)
        assert sum(refusal.nodes for refusal in decision.refusals) == len(nodes)
        assert all(0 <= one.unresolvable <= one.nodes for one in decision.refusals)
        return
    assert isinstance(decision, Chosen)
    assert decision.feasible == len(feasible)
    mask, _ = filter_nodes(shape, nodes, DEFAULT_PROFILE)
    points = score_nodes(shape, nodes, DEFAULT_PROFILE, mask)
    assert nodes.at[decision.node] in feasible
    assert decision.points == max(points[at] for at in feasible)


def test_ties_are_broken_at_random():
    plain = {"spec": {}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}}
    there = [{"metadata": {"name": f"n{number}"}, **plain} for number in range(4)]
    nodes = snapshot_of((there, {}))
    shape = pod_info_of({"metadata": {}, "spec": {"containers": [{"name": "c"}]}}).shape
    chosen = {decide(shape, nodes, DEFAULT_PROFILE, random.Random(seed)).node for seed in range(50)}
    assert chosen == {"n0", "n1", "n2", "n3"}
