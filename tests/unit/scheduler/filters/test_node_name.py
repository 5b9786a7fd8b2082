from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.filters.node_name import NODE_NAME
from sampan.scheduler.model.pod_info import pod_info_of
from tests.support.generators.random_clusters import clusters, pods, snapshot_of


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods(), st.sampled_from(["", "node-0", "node-3", "gone"]))
def test_only_the_named_node_is_allowed(cluster, pod, name):
    shape = replace(pod_info_of(pod).shape, node_name=name)
    mask = NODE_NAME.mask(shape, snapshot_of(cluster))
    expected = [not name or node["metadata"]["name"] == name for node in cluster[0]]
    assert expected == ([True] * len(expected) if mask is None else mask.tolist())
