import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.decision.batch import MOST_ROWS, MOST_SHAPES, Batches
from sampan.scheduler.decision.decide import Chosen, decide
from sampan.scheduler.model.assigned_pod import once_assigned
from sampan.scheduler.model.node_info import node_info_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.rule_scope import Depends
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.support.generators.random_clusters import (
    cache_of,
    clusters,
    crowds,
    neighbours,
    nodes,
    pods,
    snapshot_of,
)

ROOMY = st.one_of(clusters(with_demands=True), crowds())
SHAPES = st.lists(
    st.one_of(pods(with_demands=True), neighbours(), neighbours(asks=("level",))),
    min_size=1,
    max_size=3,
)


def small_node(number, cpu, taint):
    disliked = [{"key": "k", "effect": "PreferNoSchedule"}] if taint else []
    amounts = {"cpu": str(cpu), "memory": "8Gi", "pods": "110"}
    return {
        "metadata": {"name": f"n{number}", "labels": {"zone": "ab"[number % 2]}},
        "spec": {"taints": disliked}, "status": {"allocatable": amounts},
    }  # fmt: skip


SMALL = st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=2, max_size=4).map(
    lambda those: ([small_node(at, cpu, taint) for at, (cpu, taint) in enumerate(those)], {})
)


def liking(cpu, zone):
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    preferred = [{"weight": 7, "preference": term}]
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": "p", "namespace": "default", "labels": {"app": "a"}},
        "spec": {"containers": [container], "affinity": {"nodeAffinity": affinity} if zone else {}},
    }  # fmt: skip


LIKING = st.lists(
    st.builds(liking, st.sampled_from(("500m", "1")), st.sampled_from(("", "a"))),
    min_size=1,
    max_size=2,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(SMALL, LIKING, st.data())
def test_a_batch_that_fills_its_nodes_decides_as_one_by_one(cluster, shapes, data):
    """[S3] Where nodes drop out, the points of the others change too."""
    decide_both_ways(cluster, shapes, data)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(ROOMY, SHAPES, st.data())
def test_a_batch_decides_as_one_by_one(cluster, shapes, data):
    """[S3] The same nodes, the same points, the same draws, whatever happens in between."""
    decide_both_ways(cluster, shapes, data)


def decide_both_ways(cluster, shapes, data):
    there, placed = cluster
    cache = cache_of(there, placed)
    if data.draw(st.booleans()):  # then pods are spread that do not ask for it
        service = {"spec": {"selector": {"app": "a"}}}
        cache.columns.workloads.put_service("default/s", service)
    batches = Batches(cache.columns, DEFAULT_PROFILE)
    seed = data.draw(st.integers(0, 9))
    here, there_rng = random.Random(seed), random.Random(seed)
    assumed = []
    for number in range(data.draw(st.integers(1, 14))):
        pod = pod_info_of(data.draw(st.sampled_from(shapes)))
        found = batches.decide(pod.shape, here)
        assert found == decide(pod.shape, cache.snapshot(), DEFAULT_PROFILE, there_rng)
        if isinstance(found, Chosen):
            uid = f"new-{number}"
            cache.assume(uid, found.node, once_assigned(pod))
            assumed.append(uid)
        match data.draw(st.integers(0, 5)):
            case 0 if assumed:
                cache.remove_pod(assumed.pop())
            case 1:
                for node in data.draw(nodes(2)):
                    cache.put_node(node_info_of(node))
            case 2 if there:
                cache.remove_node(there[0]["metadata"]["name"])


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(with_demands=True), pods(with_demands=True))
def test_a_rule_that_looks_at_one_node_says_the_same_of_it_as_of_all(cluster, pod):
    all_nodes, shape = snapshot_of(cluster), pod_info_of(pod).shape
    everywhere = np.ones(len(all_nodes), np.bool_)
    for rule in DEFAULT_PROFILE.filters:
        assert (rule.at is not None) == (rule.depends is Depends.PLACE), rule.name
        if rule.at is not None:
            mask = rule.mask(shape, all_nodes)
            expected = everywhere if mask is None else mask
            assert [rule.at(shape, all_nodes, at) for at in range(len(all_nodes))] == list(expected)
    for rule, _ in DEFAULT_PROFILE.scores:
        assert (rule.at is not None) == (rule.depends is Depends.PLACE), rule.name
        if rule.at is not None:
            points = rule.points(shape, all_nodes, everywhere)
            expected = np.zeros(len(all_nodes), np.int64) if points is None else points
            assert [rule.at(shape, all_nodes, at) for at in range(len(all_nodes))] == list(expected)


def plain(number, cpu="100m", labels=None):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": f"p{number}", "uid": f"p{number}", "namespace": "default", "labels": labels}
    return pod_info_of({"metadata": meta, "spec": {"containers": [container]}})


def roomy(count):
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    return [
        {"metadata": {"name": f"n{number}"}, "spec": {}, "status": {"allocatable": amounts}}
        for number in range(count)
    ]


def test_many_changes_between_two_pods_of_a_shape_are_all_seen():
    cache = cache_of(roomy(3), {})
    batches = Batches(cache.columns, DEFAULT_PROFILE)
    batches.decide(plain("first").shape, random.Random(1))
    for number in range(3 * 80):
        cache.assume(f"other-{number}", f"n{number % 3}", once_assigned(plain(number)))
        if number % (MOST_ROWS + 7) == 0:
            expected = decide(
                plain("x").shape, cache.snapshot(), DEFAULT_PROFILE, random.Random(number)
            )
            assert batches.decide(plain("x").shape, random.Random(number)) == expected
    refused = batches.decide(plain("last").shape, random.Random(1))
    assert refused == decide(plain("l").shape, cache.snapshot(), DEFAULT_PROFILE, random.Random(1))
    assert batches.decide(plain("again").shape, random.Random(1)) is refused


def test_only_so_many_shapes_are_kept():
    cache = cache_of(roomy(2), {})
    batches = Batches(cache.columns, DEFAULT_PROFILE)
    for number in range(MOST_SHAPES * 2):
        batches.decide(plain(number, cpu=f"{number + 1}m").shape, random.Random(1))
    assert len(batches._kept) == MOST_SHAPES
