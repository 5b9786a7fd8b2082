import pytest
from hypothesis import given, settings

from sampan.scheduler.filters.node_unschedulable import NODE_UNSCHEDULABLE
from sampan.scheduler.model.pod_info import pod_info_of
from tests.support.generators.random_clusters import clusters, pods, snapshot_of


def tolerates_the_cordon(toleration):
    if toleration.get("effect", "NoSchedule") != "NoSchedule":
        return False
    if toleration.get("key", "node.kubernetes.io/unschedulable") != (
        "node.kubernetes.io/unschedulable"
    ):
        return False
    return toleration.get("operator") == "Exists" or not toleration.get("value")


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods())
def test_a_cordoned_node_takes_only_pods_that_tolerate_it(cluster, pod):
    may = any(tolerates_the_cordon(one) for one in pod["spec"]["tolerations"])
    mask = NODE_UNSCHEDULABLE.mask(pod_info_of(pod).shape, snapshot_of(cluster))
    expected = [may or not node["spec"]["unschedulable"] for node in cluster[0]]
    assert expected == ([True] * len(expected) if mask is None else mask.tolist())
