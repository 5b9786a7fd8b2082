import numpy as np
import pytest
from hypothesis import given, settings

from sampan.api.quantity import value_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.scores.node_resources_fit import LEAST_ALLOCATED
from tests.support.generators.random_clusters import clusters, pods, snapshot_of

DEFAULTS = {"cpu": 100, "memory": 200 * 1024 * 1024}


def amount(text, name):
    return value_of(text).milli() if name == "cpu" else value_of(text).value()


def counted(pod, name):
    return sum(
        amount(container["resources"]["requests"][name], name)
        if name in container.get("resources", {}).get("requests", {})
        else DEFAULTS[name]
        for container in pod["spec"]["containers"]
    )


def points(pod, node, placed):
    found = []
    for name in ("cpu", "memory"):
        capacity = amount(node["status"]["allocatable"].get(name, "0"), name)
        if not capacity:
            continue
        taken = counted(pod, name) + sum(counted(other, name) for other in placed)
        found.append(0 if taken > capacity else (capacity - taken) * 100 // capacity)
    return sum(found) // len(found) if found else 0


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods())
def test_the_emptier_the_better(cluster, pod):
    there, placed = cluster
    nodes = snapshot_of(cluster)
    found = LEAST_ALLOCATED.points(pod_info_of(pod).shape, nodes, np.ones(len(nodes), bool))
    assert found.tolist() == [points(pod, node, placed[node["metadata"]["name"]]) for node in there]
