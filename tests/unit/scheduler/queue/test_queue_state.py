from dataclasses import replace

from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.cluster_events import NodeAdded, PodGone
from sampan.scheduler.model.node_info import NodeInfo
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.requests import Usage
from sampan.scheduler.queue.queue_state import LONG_POD_SECONDS, Place, QueueState

LONG = {"tolerations": [{"key": f"k{at}", "operator": "Exists"} for at in range(1000)]}
FIT = frozenset({"NodeResourcesFit"})
TAINTS = frozenset({"TaintToleration"})
POD_GONE = PodGone(AssignedPod(Usage((), 0, 0)), "n")
NODE_ADDED = NodeAdded(NodeInfo("n", {"cpu": 1000}, 110, {}, frozenset(), False, {}))


def pod(uid, priority=0, gates=(), **spec):
    spec = {"priority": priority, "schedulingGates": [{"name": gate} for gate in gates], **spec}
    return pod_info_of({"metadata": {"uid": uid, "name": uid, "namespace": "d"}, "spec": spec})


def queue_of(*pods):
    queue = QueueState()
    for at, one in enumerate(pods):
        queue.put(one, at)
    return queue


def popped(queue, now=100.0):
    waiting = queue.pop(now)
    return waiting.pod.uid if waiting else None


def test_pods_leave_by_priority_then_by_age():
    """[S2]"""
    queue = queue_of(pod("old"), pod("young"), pod("high", priority=10))
    assert [popped(queue) for _ in range(4)] == ["high", "old", "young", None]


def test_a_changed_priority_counts_at_once():
    queue = queue_of(pod("a"), pod("b"))
    queue.put(pod("b", priority=5), 3)
    assert popped(queue) == "b"


def test_a_refused_pod_waits_for_an_event_that_may_help():
    queue = queue_of(pod("a"), pod("b"))
    for rules in (FIT, TAINTS):
        queue.refused(popped(queue), rules, 100)
    queue.event(POD_GONE, 200)
    assert queue.get("a").place is Place.ACTIVE
    assert queue.get("b").place is Place.UNSCHEDULABLE


def test_an_event_soon_after_the_refusal_leaves_the_pod_in_backoff():
    queue = queue_of(pod("a"))
    queue.refused(popped(queue, 100.0), FIT, 100.0)
    queue.event(POD_GONE, 100.2)
    assert queue.get("a").place is Place.BACKOFF
    assert queue.next_flush() == 101.0
    queue.flush(101.0)
    assert queue.get("a").place is Place.ACTIVE


def test_with_nobody_else_to_try_a_pod_that_was_called_back_need_not_wait():
    """As upstream since 1.33: an idle scheduler takes from the backoff queue."""
    queue = queue_of(pod("a"))
    queue.refused(popped(queue, 100.0), FIT, 100.0)
    queue.event(POD_GONE, 100.2)
    assert queue.has_next()
    assert popped(queue, 100.2) == "a"


def test_the_backoff_doubles_from_one_second_to_ten():
    queue, now, waits = queue_of(pod("a")), 100.0, []
    for _ in range(6):
        assert popped(queue, now) == "a"
        queue.failed("a", now)
        waits.append(queue.next_flush() - now)
        assert popped(queue, now) is None
        now = queue.next_flush()
    assert waits == [1, 2, 4, 8, 10, 10]


def test_an_event_that_comes_while_a_pod_is_being_tried_is_not_lost():
    queue = queue_of(pod("a"))
    assert popped(queue) == "a"
    queue.event(POD_GONE, 100)
    queue.refused("a", FIT, 100)
    assert queue.get("a").place is not Place.UNSCHEDULABLE


def test_an_event_from_before_the_attempt_does_not_count():
    queue = queue_of(pod("a"), pod("b"))
    assert popped(queue) == "a"
    queue.event(POD_GONE, 100)
    assert popped(queue) == "b"
    queue.refused("b", FIT, 100)
    assert queue.get("b").place is Place.UNSCHEDULABLE
    queue.refused("a", FIT, 100)
    assert queue.get("a").place is Place.BACKOFF
    assert not queue._events


def test_a_pod_that_changes_while_it_is_tried_is_tried_again():
    queue = queue_of(pod("a"))
    assert popped(queue) == "a"
    queue.put(pod("a", tolerations=[{"operator": "Exists"}]), 100)
    queue.refused("a", TAINTS, 100)
    assert queue.get("a").place is Place.BACKOFF
    assert queue.get("a").pod.shape.tolerations


def test_a_refused_pod_that_changes_is_tried_again_but_not_for_its_labels():
    queue = queue_of(pod("a"))
    queue.refused(popped(queue), TAINTS, 100)
    queue.put(replace(pod("a"), key="d/a"), 200)
    assert queue.get("a").place is Place.UNSCHEDULABLE
    queue.put(pod("a", tolerations=[{"operator": "Exists"}]), 200)
    assert queue.get("a").place is Place.ACTIVE


def test_long_unschedulable_pods_try_again_by_themselves():
    queue = queue_of(pod("a"))
    queue.refused(popped(queue), TAINTS, 100)
    assert queue.next_flush() == 400
    assert popped(queue, 399) is None
    assert popped(queue, 400) == "a"


def test_gates_hold_a_pod_out_until_the_last_is_gone():
    """[S2]"""
    queue = queue_of(pod("a", gates=["x", "y"]))
    queue.event(NODE_ADDED, 1)
    assert popped(queue) is None
    queue.put(pod("a", gates=["y"]), 2)
    assert queue.get("a").place is Place.GATED
    queue.put(pod("a"), 3)
    assert popped(queue) == "a"
    assert queue.get("a").first_seen == 3


def test_an_empty_queue_has_nothing_to_wait_for():
    queue = queue_of(pod("a"))
    assert popped(queue) == "a"
    queue.remove("a")
    assert (len(queue), queue.next_flush(), queue.has_next()) == (0, None, False)
    queue.refused("a", FIT, 100)
    queue.failed("a", 100)
    assert len(queue) == 0


def test_a_pod_updated_again_and_again_does_not_grow_the_heap():
    queue = queue_of(pod("a"))
    for number in range(1000):
        queue.put(pod("a", priority=number % 7), number)
    assert len(queue._active._entries) < 100


def test_pods_that_are_long_to_decide_about_come_after_the_other_active_ones():
    queue = queue_of(pod("long", priority=9, **LONG), pod("a"), pod("longer", priority=10, **LONG))
    queue.put(pod("b"), 4)
    assert [popped(queue) for _ in range(5)] == ["a", "b", "longer", "long", None]
    queue.check()


def test_a_long_pod_is_not_kept_back_by_those_that_came_back_early():
    queue = queue_of(pod("early"))
    queue.refused(popped(queue, 100.0), FIT, 100.0)
    queue.event(POD_GONE, 100.1)
    queue.put(pod("long", **LONG), 100.2)
    assert [popped(queue, 100.3) for _ in range(2)] == ["long", "early"]
    queue.check()


def test_a_long_pod_waits_for_a_while_and_for_no_event():
    queue = queue_of(pod("long", **LONG))
    queue.refused(popped(queue, 100.0), FIT, 100.0)
    queue.check()
    queue.event(POD_GONE, 101.0)
    assert queue.get("long").place is Place.UNSCHEDULABLE
    assert queue.next_flush() == 100.0 + LONG_POD_SECONDS
    assert popped(queue, 100.0 + LONG_POD_SECONDS) == "long"
    queue.remove("long")
    queue.check()
