import numpy as np
import pytest
from hypothesis import given, settings

from sampan.api.quantity import value_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.scores.balanced_allocation import BALANCED_ALLOCATION
from tests.support.generators.random_clusters import clusters, pods, snapshot_of


def amount(text, name):
    return value_of(text).milli() if name == "cpu" else value_of(text).value()


def requested(pod, name):
    return sum(
        amount(container.get("resources", {}).get("requests", {}).get(name, "0"), name)
        for container in pod["spec"]["containers"]
    )


def points(pod, node, placed):
    shares = []
    for name in ("cpu", "memory"):
        capacity = amount(node["status"]["allocatable"].get(name, "0"), name)
        if capacity:
            taken = requested(pod, name) + sum(requested(other, name) for other in placed)
            shares.append(min(taken / capacity, 1.0))
    apart = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
    return int((1 - apart) * 100)


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods())
def test_cpu_and_memory_should_be_used_up_at_the_same_pace(cluster, pod):
    there, placed = cluster
    nodes = snapshot_of(cluster)
    found = BALANCED_ALLOCATION.points(pod_info_of(pod).shape, nodes, np.ones(len(nodes), bool))
    if not requested(pod, "cpu") and not requested(pod, "memory"):
        assert found is None
        return
    assert found.tolist() == [points(pod, node, placed[node["metadata"]["name"]]) for node in there]
