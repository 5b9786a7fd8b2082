import numpy as np
import pytest
from hypothesis import given, settings

from sampan.api.rules.tolerations import Taint, is_tolerated, tolerations_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.scores.taint_toleration import PREFERRED_TAINTS
from tests.support.generators.random_clusters import clusters, pods, snapshot_of


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods())
def test_fewer_disliked_taints_are_better(cluster, pod):
    nodes = snapshot_of(cluster)
    found = PREFERRED_TAINTS.points(pod_info_of(pod).shape, nodes, np.ones(len(nodes), bool))
    tolerations = tolerations_of(pod)
    raw = []
    for node in cluster[0]:
        taints = {
            Taint(one["key"], one.get("value", ""), one["effect"]) for one in node["spec"]["taints"]
        }
        raw.append(
            sum(
                taint.effect == "PreferNoSchedule" and not is_tolerated(tolerations, taint)
                for taint in taints
            )
        )
    if not any(raw):
        assert found is None  # 100 points each: no difference
        return
    assert found.tolist() == [100 - one * 100 // max(raw) for one in raw]
