"""The scheduling queue against what must always hold: nobody lost, nobody in two places. [S2]"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.cluster_events import NodeAdded, PodGone
from sampan.scheduler.model.node_info import NodeInfo
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.requests import Usage
from sampan.scheduler.queue.queue_state import (
    BACKOFF,
    LONGEST_UNSCHEDULABLE_SECONDS,
    Place,
    QueueState,
)
from sampan.scheduler.queue.requeue import may_help

UIDS = st.sampled_from("abcde")
RULES = st.sets(st.sampled_from(["NodeResourcesFit", "TaintToleration", "NodePorts"]), min_size=1)
EVENTS = st.sampled_from(
    [
        PodGone(AssignedPod(Usage((), 0, 0)), "n"),
        NodeAdded(NodeInfo("n", {"cpu": 1000}, 110, {}, frozenset(), False, {})),
        NodeAdded(NodeInfo("m", {"cpu": 1000}, 110, {"a": "b"}, frozenset(), False, {})),
    ]
)


def pod(uid, priority, gated, picky):
    spec = {
        "priority": priority,
        "schedulingGates": [{"name": "g"}] if gated else [],
        "nodeSelector": {"a": "b"} if picky else {},
    }
    return pod_info_of({"metadata": {"uid": uid, "name": uid}, "spec": spec})


class QueueMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.queue, self.now = QueueState(), 0.0
        self.there = set()
        self.owed = set()  # in flight, and an event or a change has come that may help
        self.seen = {}  # in flight: the events since

    def flying(self):
        return sorted(uid for uid in self.there if self.queue.get(uid).place is Place.IN_FLIGHT)

    @rule(uid=UIDS, priority=st.sampled_from([0, 5]), gated=st.booleans(), picky=st.booleans())
    def put(self, uid, priority, gated, picky):
        known = self.queue.get(uid)
        made = pod(uid, priority, gated, picky)
        if (
            known is not None
            and known.place is Place.IN_FLIGHT
            and (known.pod.shape != made.shape or known.pod.gates != made.gates)
        ):
            self.owed.add(uid)
        self.queue.put(made, self.now)
        self.there.add(uid)

    @rule(uid=UIDS)
    def remove(self, uid):
        self.queue.remove(uid)
        self.there.discard(uid)
        self.owed.discard(uid)
        self.seen.pop(uid, None)

    @rule()
    def pop(self):
        active = [one for uid in self.there if (one := self.queue.get(uid)).place is Place.ACTIVE]
        waiting = self.queue.pop(self.now)
        if waiting is None:
            assert not active
            return
        if active:
            assert waiting.pod.priority >= max(one.pod.priority for one in active)
        self.seen[waiting.pod.uid] = []

    @precondition(lambda self: self.flying())
    @rule(data=st.data(), rules=RULES)
    def refuse(self, data, rules):
        uid = data.draw(st.sampled_from(self.flying()))
        shape = self.queue.get(uid).pod.shape
        helped = any(may_help(event, shape, frozenset(rules)) for event in self.seen.pop(uid))
        self.queue.refused(uid, frozenset(rules), self.now)
        waits = self.queue.get(uid).place is Place.UNSCHEDULABLE
        assert waits != (helped or uid in self.owed)
        self.owed.discard(uid)

    @precondition(lambda self: self.flying())
    @rule(data=st.data())
    def fail(self, data):
        uid = data.draw(st.sampled_from(self.flying()))
        self.queue.failed(uid, self.now)
        assert self.queue.get(uid).place is Place.BACKOFF
        self.seen.pop(uid)
        self.owed.discard(uid)

    @rule(event=EVENTS)
    def event(self, event):
        for events in self.seen.values():
            events.append(event)
        before = {uid: self.queue.get(uid) for uid in self.there}
        self.queue.event(event, self.now)
        for uid, known in before.items():
            moved = self.queue.get(uid).place is not known.place
            waits = known.place is Place.UNSCHEDULABLE
            assert moved == (waits and may_help(event, known.pod.shape, known.rules))

    @rule(seconds=st.sampled_from([0.5, 1, 5, 10, 100, 300]))
    def advance(self, seconds):
        self.now += seconds
        self.queue.flush(self.now)
        for uid in self.there:
            known = self.queue.get(uid)
            if known.place is Place.BACKOFF:
                assert self.now < known.since + BACKOFF.cap_seconds
            if known.place is Place.UNSCHEDULABLE:
                assert self.now < known.since + LONGEST_UNSCHEDULABLE_SECONDS

    @invariant()
    def nobody_is_lost_or_in_two_places(self):
        self.queue.check()
        assert {uid for uid in "abcde" if uid in self.queue} == self.there

    @invariant()
    def events_are_kept_only_while_somebody_flies(self):
        if not self.flying():
            assert not self.queue._events

    @invariant()
    def whoever_waits_for_time_is_woken(self):
        waits = (Place.BACKOFF, Place.UNSCHEDULABLE)
        if any(self.queue.get(uid).place in waits for uid in self.there):
            assert self.queue.next_flush() is not None


TestQueueMachine = pytest.mark.slow(QueueMachine.TestCase)
TestQueueMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
