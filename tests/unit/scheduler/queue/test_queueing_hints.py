import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.decision.batch import Batches
from sampan.scheduler.decision.decide import Chosen
from sampan.scheduler.decision.nominated_pods import Nominator
from sampan.scheduler.model.assigned_pod import assigned_pod_of
from sampan.scheduler.model.cluster_events import PodGone
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.profile import DEFAULT_PROFILE
from sampan.scheduler.queue.queue_state import Alike
from sampan.scheduler.queue.queueing_hints import Hints
from tests.support.generators.random_clusters import cache_of, clusters, crowds, neighbours, pods


def alike(row, refused):
    return Alike(row.shape, refused.rules, row.priority)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    st.one_of(clusters(with_demands=True), crowds()),
    st.one_of(pods(with_demands=True), neighbours(), pods()),
    st.lists(neighbours("expected"), max_size=1),
    st.data(),
)
def test_who_could_be_scheduled_after_an_event_is_always_named(cluster, pod, coming, data):
    """[S2]"""
    there, placed = cluster
    cache, nominator = cache_of(there, placed), Nominator()
    row = pod_info_of(pod)
    for made in coming:
        if there:
            nominator.put(assigned_pod_of(made), there[0]["metadata"]["name"])
    batches = Batches(cache.columns, DEFAULT_PROFILE)
    expected = nominator.for_others(row.uid, row.priority)
    refused = batches.decide(row.shape, random.Random(1), expected)
    assigned_pods = [(one["metadata"]["uid"], name) for name in placed for one in placed[name]]
    if isinstance(refused, Chosen) or not assigned_pods:
        return
    uid, _ = data.draw(st.sampled_from(assigned_pods))
    event = cache.remove_pod(uid)
    assert isinstance(event, PodGone)
    helped = Hints(cache, nominator, DEFAULT_PROFILE).helped(event, alike(row, refused), (row.uid,))
    if isinstance(batches.decide(row.shape, random.Random(1), expected), Chosen):
        assert row.uid in helped


def node(name, cpu):
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": amounts}}


def asking(name, cpu, priority=0):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "uid": name, "namespace": "default"}
    return {"metadata": meta, "spec": {"containers": [container], "priority": priority}}


def test_a_pod_that_goes_wakes_only_whom_its_node_has_room_for():
    """[S2]"""
    placed = {"a": [asking("small", "1"), asking("more", "2")]}
    cache, nominator = cache_of([node("a", "3")], placed), Nominator()
    hints = Hints(cache, nominator, DEFAULT_PROFILE)
    rules = frozenset({"NodeResourcesFit"})
    event = cache.remove_pod("small")
    for cpu, expected in (("1", {"w"}), ("2", set())):
        group = Alike(pod_info_of(asking("w", cpu)).shape, rules, 0)
        assert set(hints.helped(event, group, {"w"})) == expected


def test_room_that_is_kept_for_somebody_wakes_that_one_alone():
    """[S2]"""
    cache, nominator = cache_of([node("a", "2")], {"a": [asking("old", "2")]}), Nominator()
    hints = Hints(cache, nominator, DEFAULT_PROFILE)
    nominator.put(assigned_pod_of(asking("first", "2", 5)), "a")
    event = cache.remove_pod("old")
    group = Alike(pod_info_of(asking("x", "2")).shape, frozenset({"NodeResourcesFit"}), 5)
    assert list(hints.helped(event, group, {"first", "second", "third"})) == ["first"]
    higher = Alike(group.shape, group.rules, 9)
    assert set(hints.helped(event, higher, {"vip"})) == {"vip"}
