import numpy as np
import pytest
from hypothesis import given, settings

from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.scores.image_locality import IMAGE_LOCALITY
from tests.support.generators.random_clusters import clusters, pods, snapshot_of

MIB = 1024 * 1024


def full_name(name):
    return name if ":" in name.split("/")[-1] else f"{name}:latest"


def size_on(node, image):
    found = 0
    for one in node["status"]["images"]:
        if full_name(image) in one["names"]:
            found = one["sizeBytes"]
    return found


def points(pod, node, there):
    images = [container["image"] for container in pod["spec"]["containers"]]
    total = 0
    for image in images:
        having = sum(size_on(other, image) > 0 for other in there)
        total += int(size_on(node, image) * (having / len(there)))
    most = 1000 * MIB * len(images)
    return 100 * (min(max(total, 23 * MIB), most) - 23 * MIB) // (most - 23 * MIB)


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods())
def test_images_count_by_size_and_by_how_many_nodes_have_them(cluster, pod):
    nodes = snapshot_of(cluster)
    found = IMAGE_LOCALITY.points(pod_info_of(pod).shape, nodes, np.ones(len(nodes), bool))
    expected = [points(pod, node, cluster[0]) for node in cluster[0]]
    assert (expected if found is not None else [0] * len(nodes)) == expected
    assert found is None or found.tolist() == expected
