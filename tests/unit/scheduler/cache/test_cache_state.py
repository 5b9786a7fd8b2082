from dataclasses import replace

from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.cluster_events import (
    NodeAdded,
    NodeChanged,
    NodeGone,
    PodGone,
    PodPlaced,
)
from sampan.scheduler.model.node_info import NodeInfo
from sampan.scheduler.model.requests import Usage

POD = AssignedPod(Usage((("cpu", 100),), 100, 0))


def node(name, cpu=1000):
    return NodeInfo(name, {"cpu": cpu}, 110, {}, frozenset(), False, {})


def cpu(cache, name):
    nodes = cache.snapshot()
    return int(nodes.requested["cpu"][nodes.at[name]])


def test_an_assumption_counts_until_it_is_forgotten():
    cache = CacheState()
    cache.put_node(node("n"))
    cache.assume("p", "n", POD)
    assert cpu(cache, "n") == 100
    assert cache.forget("p") == PodGone(POD, "n")
    assert cpu(cache, "n") == 0


def test_a_confirmed_assumption_cannot_be_forgotten():
    cache = CacheState()
    cache.put_node(node("n"))
    cache.assume("p", "n", POD)
    assert cache.put_pod("p", "n", POD) == [PodPlaced(POD, "n")]
    assert cache.put_pod("p", "n", POD) == []
    assert cache.forget("p") is None
    assert cpu(cache, "n") == 100


def test_the_apis_word_replaces_an_assumption():
    cache = CacheState()
    cache.put_node(node("n"))
    cache.put_node(node("m"))
    cache.assume("p", "n", POD)
    assert cache.put_pod("p", "m", POD) == [PodGone(POD, "n"), PodPlaced(POD, "m")]
    assert (cpu(cache, "n"), cpu(cache, "m")) == (0, 100)


def test_pods_that_came_before_their_node_count_when_it_comes():
    cache = CacheState()
    cache.put_pod("p", "n", POD)
    assert cache.put_node(node("n")) == NodeAdded(node("n"))
    assert cpu(cache, "n") == 100
    assert cache.remove_node("n") == NodeGone("n")
    assert cache.remove_node("n") is None
    cache.put_node(node("n"))
    assert cpu(cache, "n") == 100


def test_an_unchanged_node_is_no_event():
    cache = CacheState()
    cache.put_node(node("n"))
    assert cache.put_node(node("n")) is None
    assert cache.put_node(node("n", 2000)) == NodeChanged(node("n"), node("n", 2000))


def test_lower_priorities_are_known_while_their_pods_are_there():
    cache = CacheState()
    cache.put_pod("p", "n", replace(POD, priority=5))
    assert cache.any_below(6)
    assert not cache.any_below(5)
    cache.put_pod("p", "n", replace(POD, priority=10))
    assert not cache.any_below(6)
    cache.remove_pod("p")
    assert not cache.any_below(100)


def test_a_pod_that_begins_to_terminate_frees_nothing_yet():
    cache = CacheState()
    cache.put_pod("a", "n", AssignedPod(Usage((), 0, 0)))
    [event] = cache.put_pod("a", "n", AssignedPod(Usage((), 0, 0), terminating=True))
    assert isinstance(event, PodPlaced)


def test_what_no_rule_looks_at_is_kept_without_an_event():
    cache = CacheState()
    cache.put_node(NodeInfo("n", {}, 110, {}, frozenset(), False, {}))
    cache.put_pod("a", "n", AssignedPod(Usage((), 0, 0)))
    assert cache.put_pod("a", "n", AssignedPod(Usage((), 0, 0), started=7.0)) == []
    assert [one.started for one in cache.on("n")] == [7.0]
    assert cache.pod("a").started == 7.0
    assert cache.columns.table.started[0] == 7.0
