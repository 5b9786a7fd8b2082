"""How much storage is left where a pod's claims would go. [V1] StorageCapacityScoring"""

import numpy as np
import pytest

from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.scores.volume_binding import FREE_STORAGE, capacity_scoring
from tests.support.generators.storage_objects import (
    ZONE,
    claim,
    node,
    pod,
    storage_class,
    volume,
    world,
)

pytestmark = pytest.mark.kubernetes("1.37")
NODES = [node(0, "a"), node(1, "b"), node(2, "c")]
DRIVER = "disks.example.com"
MADE = storage_class(provisioner=DRIVER)


def points(nodes, *claims, score=FREE_STORAGE):
    shape = pod_info_of(pod(*claims)).shape
    found = score.points(shape, nodes, np.ones(len(NODES), np.bool_))
    return None if found is None else found.tolist()


def reporting(nodes, **gibibytes):
    """A driver that says how much it has in each zone."""
    nodes.volumes.put_driver(DRIVER, {"spec": {"storageCapacity": True}})
    for zone, size in gibibytes.items():
        where = {"matchLabels": {ZONE: zone}}
        report = {"storageClassName": "fast", "nodeTopology": where, "capacity": f"{size}Gi"}
        nodes.volumes.put_capacity(f"default/{zone}", report)
    return nodes


def test_the_node_with_the_most_capacity_left_is_preferred():
    nodes = reporting(world(NODES, claims=[claim("one", 10)], classes=[MADE]), a=10, b=20, c=100)
    assert points(nodes, "one") == [0, 50, 90]


def test_two_claims_of_a_class_come_out_of_one_pool():
    claims = [claim("one", 10), claim("two", 30)]
    nodes = reporting(world(NODES, claims=claims, classes=[MADE]), a=40, b=80, c=400)
    assert points(nodes, "one", "two") == [0, 50, 90]


def test_volumes_count_by_their_size_and_what_is_provisioned_beside_them_does_not():
    volumes = [volume("small", 10, ["a"]), volume("large", 40, ["b"])]
    claims = [claim("one", 10)]
    nodes = reporting(world(NODES, volumes, claims, [MADE]), a=1000, b=1000, c=20)
    assert points(nodes, "one") == [0, 75, 50]


def test_classes_weigh_the_same():
    slow = storage_class("slow")
    volumes = [volume("v", 20), volume("w", 100, storage="slow")]
    claims = [claim("one", 10), claim("two", 10, storage="slow")]
    assert points(world(NODES, volumes, claims, [MADE, slow]), "one", "two") == [70] * 3


def test_a_shape_may_prefer_what_is_nearly_full():
    nodes = reporting(world(NODES, claims=[claim("one", 10)], classes=[MADE]), a=10, b=20, c=100)
    packed = capacity_scoring([(0, 0), (100, 10)])
    assert points(nodes, "one", score=packed) == [100, 50, 10]


def test_what_nobody_reports_gives_no_points():
    nodes = world(NODES, claims=[claim("one", 10)], classes=[MADE])
    assert points(nodes, "one") == [0, 0, 0]
    assert points(nodes) is None


@pytest.mark.kubernetes("1.36")
def test_without_the_gate_nothing_is_preferred():
    nodes = reporting(world(NODES, claims=[claim("one", 10)], classes=[MADE]), a=10, b=20)
    assert points(nodes, "one") is None
