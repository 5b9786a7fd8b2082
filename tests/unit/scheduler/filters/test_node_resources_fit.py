import pytest
from hypothesis import given, settings

from sampan.api.quantity import value_of
from sampan.scheduler.filters.node_resources_fit import NODE_RESOURCES_FIT
from sampan.scheduler.model.pod_info import pod_info_of
from tests.support.generators.random_clusters import clusters, pods, snapshot_of

RESOURCES = ("cpu", "memory", "example.com/gpu")


def requested(pod, name):
    containers = pod["spec"]["containers"]
    written = [one.get("resources", {}).get("requests", {}).get(name, "0") for one in containers]
    return sum(value_of(text).milli() for text in written)


def allocatable(node, name):
    return value_of(node["status"]["allocatable"].get(name, "0")).milli()


def lacking(pod, node, placed):
    """The reasons of one node, as upstream words them."""
    found = []
    if len(placed) + 1 > allocatable(node, "pods") // 1000:
        found.append("Too many pods")
    for name in RESOURCES:
        want = requested(pod, name)
        free = allocatable(node, name) - sum(requested(other, name) for other in placed)
        if want and want > free:
            found.append(f"Insufficient {name}")
    return found


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods())
def test_a_node_is_allowed_exactly_where_nothing_is_lacking(cluster, pod):
    there, placed = cluster
    nodes, shape = snapshot_of(cluster), pod_info_of(pod).shape
    mask = NODE_RESOURCES_FIT.mask(shape, nodes)
    lacks = [lacking(pod, node, placed[node["metadata"]["name"]]) for node in there]
    assert mask.tolist() == [not one for one in lacks]
    counts = {}
    for reason in [reason for why in lacks for reason in why]:
        counts[reason] = counts.get(reason, 0) + 1
    assert NODE_RESOURCES_FIT.reasons(shape, nodes, ~mask) == counts
    hopeless = [
        bool(why) and any(requested(pod, name) > allocatable(node, name) for name in RESOURCES)
        for why, node in zip(lacks, there, strict=True)
    ]
    assert NODE_RESOURCES_FIT.unresolvable(shape, nodes, ~mask).tolist() == hopeless
