import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.pod_terms import Carried, carried_by, demands_of
from sampan.scheduler.scores.inter_pod_affinity import nearness
from tests.support.generators.random_clusters import NAMESPACES, crowds, neighbours, snapshot_of


def worth(term, weight, pod, node, other):
    """What one pod on `other` adds to `node` by one term that means `pod`."""
    meta = pod["metadata"]
    means = term.selector.matches(meta["namespace"], NAMESPACES[meta["namespace"]], meta["labels"])
    here = node["metadata"]["labels"].get(term.topology_key)
    there = other["metadata"]["labels"].get(term.topology_key)
    return weight if means and here is not None and here == there else 0


def raw_points(pod, node, cluster, hard_weight=1):
    there, placed = cluster
    total = 0
    for other in there:
        for assigned in placed[other["metadata"]["name"]]:
            for weight, term in demands_of(pod).preferred:
                total += worth(term, weight, assigned, node, other)
            for carried in carried_by(demands_of(assigned)):
                assert isinstance(carried, Carried)
                weight = hard_weight if carried.attracts else carried.weight
                total += worth(carried.term, weight, pod, node, other)
    return total


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    crowds(),
    neighbours(asks=("rather near", "rather apart")),
    st.sampled_from((1, 0, 50)),
    st.booleans(),
    st.data(),
)
def test_points_are_those_of_the_slow_way(cluster, pod, hard_weight, ignores, data):
    """[S4] With hardPodAffinityWeight, and with ignorePreferredTermsOfExistingPods, which spares
    pods that have no wishes of their own."""
    nodes = snapshot_of(cluster)
    feasible = data.draw(st.lists(st.booleans(), min_size=len(nodes), max_size=len(nodes)))
    if not any(feasible):
        return
    rule = nearness(hard_weight, ignores_others_wishes=ignores)
    found = rule.points(pod_info_of(pod).shape, nodes, np.array(feasible, bool))
    if ignores and not demands_of(pod).preferred:
        assert found is None
        return
    raw = [raw_points(pod, node, cluster, hard_weight) for node in cluster[0]]
    counted = [one for one, may in zip(raw, feasible, strict=True) if may]
    least, most = min(counted), max(counted)
    if least == most:
        assert found is None
        return
    for points, one, may in zip(found.tolist(), raw, feasible, strict=True):
        if may:
            assert points == int(100 * ((one - least) / (most - least)))
