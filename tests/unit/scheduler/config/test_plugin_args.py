import math
import statistics
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api import features
from sampan.api.configuration import BadConfiguration
from sampan.api.features import Release
from sampan.scheduler.config.configuration import API_VERSION, KIND, read
from sampan.scheduler.decision.decide import filter_nodes
from sampan.scheduler.model.node_info import node_info_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.queue.requeue import could_take
from tests.support.generators.random_clusters import clusters, pods, snapshot_of, terms

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def profile_with(name, **args):
    written = {"pluginConfig": [{"name": name, "args": args}]}
    return read({"apiVersion": API_VERSION, "kind": KIND, "profiles": [written]}).profiles[0]


def rule(those, name):
    [found] = [one for one in those if one.name == name]
    return found


def score(profile, name):
    return rule([one for one, _ in profile.scores], name)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(clusters(), pods(), st.lists(terms, min_size=1, max_size=2))
def test_added_affinity_is_demanded_of_every_node(cluster, pod, added):
    """[S4] Each node must match the profile's terms and the pod's."""
    made = profile_with("NodeAffinity", addedAffinity={REQUIRED: {"nodeSelectorTerms": added}})
    nodes, shape = snapshot_of(cluster), pod_info_of(pod).shape
    one = rule(made.filters, "NodeAffinity")
    found = one.mask(shape, nodes)
    asks = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": added}}}}
    enforced = pod_info_of({"metadata": {}, "spec": {"containers": [], **asks}}).shape
    own = pod_info_of(
        {"metadata": {}, "spec": {**pod["spec"], "containers": [], "tolerations": []}}
    ).shape
    roomy = {"allocatable": {"pods": "1"}}
    for at, node in enumerate(cluster[0]):
        row = node_info_of({"metadata": node["metadata"], "status": roomy})
        assert found[at] == (could_take(row, enforced) and could_take(row, own))
    said = one.reasons(shape, nodes, ~found)
    assert sum(said.values()) == int((~found).sum())


def test_added_preferences_count_beside_the_pods():
    liked = [{"weight": 3, "preference": {"matchExpressions": [_in("disk", "a")]}}]
    made = profile_with("NodeAffinity", addedAffinity={PREFERRED: liked})
    nodes = snapshot_of(([_node("n0", disk="a"), _node("n1", zone="z"), _node("n2")], {}))
    wishes = [{"weight": 6, "preference": {"matchExpressions": [_in("zone", "z")]}}]
    spec = {"containers": [], "affinity": {"nodeAffinity": {PREFERRED: wishes}}}
    points = score(made, "NodeAffinity").points
    shape = pod_info_of({"metadata": {}, "spec": spec}).shape
    assert points(shape, nodes, np.ones(3, bool)).tolist() == [50, 100, 0]
    plain = pod_info_of({"metadata": {}, "spec": {"containers": []}}).shape
    assert points(plain, nodes, np.ones(3, bool)).tolist() == [100, 0, 0]


def _in(key, value):
    return {"key": key, "operator": "In", "values": [value]}


def _node(name, cpu="10", memory="10Gi", gpu="0", **labels):
    amounts = {"cpu": cpu, "memory": memory, "example.com/gpu": gpu, "pods": "10"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}


_strategies = st.sampled_from(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
_weights = st.dictionaries(
    st.sampled_from(("cpu", "memory", "example.com/gpu")), st.integers(1, 5), min_size=1
)
_shapes = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 10)),
    min_size=1,
    max_size=4,
    unique_by=lambda point: point[0],
).map(sorted)
_amounts = st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 4))


def by_shape(shape, percent):
    """Straight lines between the points, flat beyond the outer ones."""
    if percent < shape[0][0]:
        return shape[0][1] * 10
    for (at, points), (after, more) in pairwise(shape):
        if at <= percent <= after:
            share = (more - points) * 10 * (percent - at) / (after - at)
            return points * 10 + int(share)
    return shape[-1][1] * 10


def points_of(strategy, shape, requested, capacity):
    if strategy == "LeastAllocated":
        return 0 if requested > capacity else (capacity - requested) * 100 // capacity
    if strategy == "MostAllocated":
        return min(requested, capacity) * 100 // capacity
    return by_shape(shape, 100 if requested > capacity else requested * 100 // capacity)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(_strategies, _weights, _shapes, st.lists(_amounts, min_size=1, max_size=3), _amounts)
def test_scoring_strategies_are_those_of_the_slow_way(strategy, weights, shape, capacities, asks):
    """[S4] Node by node, resource by resource."""
    resources = [{"name": name, "weight": weight} for name, weight in weights.items()]
    points = [{"utilization": at, "score": score} for at, score in shape]
    wanted = {"type": strategy, "resources": resources}
    if strategy == "RequestedToCapacityRatio":
        wanted["requestedToCapacityRatio"] = {"shape": points}
    made = score(profile_with("NodeResourcesFit", scoringStrategy=wanted), "NodeResourcesFit")
    there = [
        _node(f"n{at}", str(cpu), f"{memory}Gi", str(gpu))
        for at, (cpu, memory, gpu) in enumerate(capacities)
    ]
    cpu, memory, gpu = asks
    requests = {"cpu": str(cpu), "memory": f"{memory}Gi", "example.com/gpu": str(gpu)}
    container = {"name": "c", "resources": {"requests": requests}}
    shape_of = pod_info_of({"metadata": {}, "spec": {"containers": [container]}}).shape
    found = made.points(shape_of, snapshot_of((there, {})), np.ones(len(there), bool))
    units = {"cpu": 1000, "memory": 2**30, "example.com/gpu": 1}
    for at, has in enumerate(capacities):
        total = weight_sum = 0
        for name, weight in weights.items():
            index = list(units).index(name)
            capacity = has[index] * units[name]
            if not capacity or (name == "example.com/gpu" and not gpu):
                continue  # devices count only for who asks for them
            got = points_of(strategy, shape, asks[index] * units[name], capacity)
            if got or strategy != "RequestedToCapacityRatio":
                total += weight * got
                weight_sum += weight
        expected = total / weight_sum if weight_sum else 0.0
        by_ratio = strategy == "RequestedToCapacityRatio"
        assert found[at] == math.floor(expected + 0.5 if by_ratio else expected)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(_amounts, min_size=1, max_size=3), _amounts)
def test_three_resources_are_balanced_by_their_deviation(capacities, asks):
    """[S4]"""
    names = ("cpu", "memory", "example.com/gpu")
    resources = [{"name": name, "weight": 1} for name in names]
    made = profile_with("NodeResourcesBalancedAllocation", resources=resources)
    there = [
        _node(f"n{at}", str(cpu), f"{memory}Gi", str(gpu))
        for at, (cpu, memory, gpu) in enumerate(capacities)
    ]
    requests = {"cpu": str(asks[0]), "memory": f"{asks[1]}Gi", "example.com/gpu": str(asks[2])}
    container = {"name": "c", "resources": {"requests": requests}}
    shape = pod_info_of({"metadata": {}, "spec": {"containers": [container]}}).shape
    points = score(made, "NodeResourcesBalancedAllocation").points
    found = points(shape, snapshot_of((there, {})), np.ones(len(there), bool))
    if not any(asks):
        assert found is None
        return
    for at, has in enumerate(capacities):
        counted = zip(asks[: 3 if asks[2] else 2], has, strict=False)
        shares = [min(want / have, 1.0) for want, have in counted if have]
        apart = statistics.pstdev(shares) if shares else 0.0
        assert abs(found[at] - (1 - apart) * 100) <= 1


def test_ignored_resources_are_not_asked_of_a_node():
    made = profile_with(
        "NodeResourcesFit", ignoredResources=["a.example/x"], ignoredResourceGroups=["b.example"]
    )
    assert [made.ignores(one) for one in ("a.example/x", "b.example/y", "cpu", "b.example")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_a_profile_with_arguments_still_decides():
    made = profile_with("PodTopologySpread", defaultingType="List", defaultConstraints=[])
    nodes = snapshot_of(([_node("n0")], {}))
    shape = pod_info_of({"metadata": {}, "spec": {"containers": []}}).shape
    assert filter_nodes(shape, nodes, made)[0].all()


@pytest.mark.parametrize(
    ("name", "args", "problem"),
    [
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight: 101 is not"),
        ("InterPodAffinity", {"hardPodAffinityWeight": "x"}, "hardPodAffinityWeight: 'x' is no"),
        ("PodTopologySpread", {"defaultingType": "Some"}, "defaultingType: 'Some' is none of"),
        ("PodTopologySpread", {"defaultConstraints": [{}]}, "defaultConstraints: must be empty"),
        (
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": [{"maxSkew": 0}]},
            "defaultConstraints[0].maxSkew: 0 is not greater than 0",
        ),
        (
            "NodeAffinity",
            {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": []}}},
            "nodeSelectorTerms: at least one is needed",
        ),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a"}]}]}
                }
            },
            "key and operator are needed",
        ),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "Best"}}, "type: 'Best' is none of"),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            "shape: at least one point is needed",
        ),
        (
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "requestedToCapacityRatio": {"shape": [{"utilization": 5}, {"utilization": 5}]}
                }
            },
            "utilization must grow",
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 3}]},
            "the weight of cpu must be 1",
        ),
        ("NodeName", {"a": 1}, "NodeName: it takes no arguments"),
    ],
)
def test_mistakes_are_named_with_their_path(name, args, problem):
    with pytest.raises(BadConfiguration) as caught:
        profile_with(name, **args)
    assert any(problem in one for one in caught.value.problems), caught.value.problems


@pytest.mark.kubernetes("1.37")
def test_volumes_are_scored_by_a_shape_where_the_gate_is_on():
    packed = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
    made = score(profile_with("VolumeBinding", **packed), "VolumeBinding")
    assert made is not score(profile_with("VolumeBinding"), "VolumeBinding")
    with (
        features.used(Release("1.36")),
        pytest.raises(BadConfiguration, match="turn on the feature gate StorageCapacityScoring"),
    ):
        profile_with("VolumeBinding", **packed)
