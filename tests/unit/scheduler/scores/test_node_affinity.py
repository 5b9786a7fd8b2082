import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.rules.node_selectors import matches, term_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.scores.node_affinity import PREFERRED_NODE_AFFINITY
from tests.support.generators.random_clusters import clusters, pods, snapshot_of


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods(), st.data())
def test_the_weights_of_matching_terms_are_scaled_to_the_best_feasible_node(cluster, pod, data):
    nodes = snapshot_of(cluster)
    feasible = data.draw(st.lists(st.booleans(), min_size=len(nodes), max_size=len(nodes)))
    found = PREFERRED_NODE_AFFINITY.points(pod_info_of(pod).shape, nodes, np.array(feasible, bool))
    preferred = pod["spec"]["affinity"]["nodeAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    if not preferred:
        assert found is None
        return
    raw = [
        sum(
            one["weight"]
            for one in preferred
            if matches(
                term_of(one["preference"]), node["metadata"]["name"], node["metadata"]["labels"]
            )
        )
        for node in cluster[0]
    ]
    most = max((one for one, may in zip(raw, feasible, strict=True) if may), default=0)
    for points, one, may in zip(found.tolist(), raw, feasible, strict=True):
        if may:
            assert points == (one * 100 // most if most else 0)
