import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.decision.batch import Batches
from sampan.scheduler.decision.decide import Chosen, Refused, filter_nodes
from sampan.scheduler.decision.nominated_pods import (
    NOBODY,
    Nominator,
    refused_with,
    with_room_for,
)
from sampan.scheduler.model.assigned_pod import AssignedPod, assigned_pod_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.requests import Usage
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.support.generators.random_clusters import cache_of, clusters, crowds, neighbours, pods


def one(uid, priority=0):
    return AssignedPod(Usage((), 0, 0), priority, uid=uid)


def test_a_pod_is_expected_on_one_node_only():
    nominator = Nominator()
    nominator.put(one("a"), "x")
    nominator.put(one("a"), "y")
    assert nominator.node_of("a") == "y"
    assert nominator.on("x") == []
    nominator.put(one("a"), "")
    assert nominator.for_others("b", 0) == NOBODY


def test_room_is_left_to_those_who_are_at_least_as_important():
    nominator = Nominator()
    for uid, priority in (("low", 1), ("equal", 5), ("high", 9)):
        nominator.put(one(uid, priority), "x")
    assert [pod.uid for pod in nominator.for_others("me", 5)["x"]] == ["equal", "high"]
    assert [pod.uid for pod in nominator.for_others("high", 5)["x"]] == ["equal"]
    assert nominator.for_others("high", 6) == {}


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(
    crowds(),
    st.one_of(neighbours(), neighbours(asks=("apart",)), pods()),
    st.lists(st.one_of(neighbours("e"), neighbours("e", asks=("apart",))), min_size=1, max_size=3),
)
def test_a_node_must_do_with_and_without_those_who_are_expected(cluster, pod, coming):
    """[S2] Against caches in which they have really come, node by node."""
    there, placed = cluster
    cache = cache_of(there, placed)
    nominator = Nominator()
    where = {}
    for number, made in enumerate(coming):
        made["metadata"]["uid"] = f"e{number}"
        node = there[number % len(there)]["metadata"]["name"]
        nominator.put(assigned_pod_of(made), node)
        where.setdefault(node, []).append(made)
    shape = pod_info_of(pod).shape
    good = []
    for node in there:
        name = node["metadata"]["name"]
        both = []
        for more in ([], where.get(name, [])):
            nodes = cache_of(there, placed | {name: [*placed[name], *more]}).snapshot()
            both.append(bool(filter_nodes(shape, nodes, DEFAULT_PROFILE)[0][nodes.at[name]]))
        if all(both):
            good.append(name)
    batches = Batches(cache.columns, DEFAULT_PROFILE)
    expected = nominator.for_others("me", 0)
    found = batches.decide(shape, random.Random(1), expected)
    if not good:
        assert isinstance(found, Refused)
        assert sum(refusal.nodes for refusal in found.refusals) == len(there)
        return
    assert isinstance(found, Chosen)
    assert found.node in good
    assert found.feasible == len(good)
    first = batches.decide(shape, random.Random(1), expected, first=good[-1])
    assert first.node == good[-1]


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(
    clusters(),
    pods("me"),
    st.lists(
        st.tuples(pods("e"), st.integers(0, 4), st.sampled_from((0, 5, 10))), min_size=1, max_size=4
    ),
    st.booleans(),
)
def test_room_is_weighed_all_at_once_as_one_by_one(cluster, pod, coming, is_expected_itself):
    """Some come, some are withdrawn, nodes come and go in between; the pod itself may be one."""
    cache, nominator = cache_of(*cluster), Nominator()
    row = pod_info_of(pod)
    nominator.taken(row.priority, cache.columns)  # from here on it is kept up to date
    for number, (made, where, priority) in enumerate(coming):
        uid = "me" if is_expected_itself and not number else f"e{number % 3}"
        assigned = replace(assigned_pod_of(made), uid=uid, priority=priority)
        nominator.put(assigned, f"node-{where}")
        if number == 1:
            cache.remove_node("node-0")
    expected = nominator.for_others("me", row.priority)
    nodes = cache.snapshot()
    feasible, _ = filter_nodes(row.shape, nodes, DEFAULT_PROFILE)
    asked = (row.shape, feasible, cache.columns, DEFAULT_PROFILE)
    found = with_room_for(expected, *asked)
    assert found.tolist() == with_room_for(dict(expected), *asked).tolist()
    assert bool(expected) == bool(dict(expected))
    if not found.any():
        at_once = refused_with(expected, row.shape, cache.columns, DEFAULT_PROFILE)
        slowly = refused_with(dict(expected), row.shape, cache.columns, DEFAULT_PROFILE)
        assert {(one.rule, one.reasons, one.nodes) for one in at_once.refusals} == {
            (one.rule, one.reasons, one.nodes) for one in slowly.refusals
        }
