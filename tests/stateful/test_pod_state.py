"""Every order of events that a pod worker can meet. [N7]"""

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sampan.kubelet.pods import pod_state
from sampan.kubelet.pods.pod_state import Cause, Phase, Worker

GRACES = st.one_of(st.integers(0, 1000).map(float), st.just(math.inf))


pytestmark = pytest.mark.slow


class PodStateMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.worker = Worker()
        self.before = self.worker
        self.asked: list[float] = []
        self.lives = 1

    def become(self, worker):
        self.before, self.worker = self.worker, worker

    @precondition(lambda self: self.worker.phase is Phase.WAITING)
    @rule()
    def start(self):
        self.become(pod_state.started(self.worker))

    @rule(grace=GRACES, cause=st.sampled_from(list(Cause)))
    def kill(self, grace, cause):
        if self.worker.phase < Phase.TERMINATED:
            self.asked.append(max(grace, pod_state.MINIMUM_GRACE_SECONDS))
        self.become(pod_state.killed(self.worker, grace, cause))

    @precondition(lambda self: Phase.TERMINATING <= self.worker.phase < Phase.FINISHED)
    @rule()
    def finish_step(self):
        self.become(pod_state.step_done(self.worker))

    @rule()
    def recreate(self):
        was = self.worker.phase
        self.become(pod_state.recreated(self.worker))
        if was is Phase.FINISHED:
            self.lives += 1
            self.asked.clear()
            self.before = self.worker

    @rule()
    def resurface(self):
        was = self.worker
        self.become(pod_state.resurfaced(self.worker))
        if was.phase is Phase.FINISHED:
            assert self.worker.phase is Phase.TERMINATING
            self.before = self.worker
        else:
            assert self.worker == was

    @invariant()
    def phase_moves_forward(self):
        assert self.worker.phase >= self.before.phase

    @invariant()
    def termination_has_a_cause_and_the_shortest_grace(self):
        if self.worker.phase >= Phase.TERMINATING:
            assert self.worker.cause is not None
            assert self.worker.grace_seconds == min(self.asked)
        else:
            assert self.worker.cause is None

    @invariant()
    def grace_never_grows(self):
        assert self.worker.grace_seconds <= self.before.grace_seconds

    @invariant()
    def the_first_cause_stays(self):
        if self.before.cause is not None:
            assert self.worker.cause is self.before.cause

    @invariant()
    def a_step_is_interrupted_exactly_when_it_does_the_wrong_thing(self):
        interrupted = pod_state.interrupts(self.before, self.worker)
        other_step = self.before.phase is not self.worker.phase
        shorter = self.worker.grace_seconds < self.before.grace_seconds
        assert interrupted == (other_step or (shorter and self.worker.phase is Phase.TERMINATING))


PodStateMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=20)
TestPodState = PodStateMachine.TestCase
