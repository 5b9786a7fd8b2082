import pytest

from sampan.kubelet.pods import pod_state
from sampan.kubelet.pods.pod_state import Cause, Phase, Worker


def test_the_way_down_is_one_step_at_a_time():
    """[N7]"""
    worker = pod_state.killed(pod_state.started(Worker()), 30, Cause.DELETED)
    phases = []
    while worker.phase is not Phase.FINISHED:
        phases.append(worker.phase)
        worker = pod_state.step_done(worker)
    assert phases == [Phase.TERMINATING, Phase.TERMINATED]


def test_a_second_kill_may_only_shorten_the_grace():
    """[N7]"""
    worker = pod_state.killed(Worker(), 30, Cause.DELETED)
    assert pod_state.killed(worker, 60, Cause.EVICTED).grace_seconds == 30
    assert pod_state.killed(worker, 0, Cause.EVICTED).grace_seconds == 1


def test_a_step_that_nobody_asked_for_is_a_bug():
    with pytest.raises(AssertionError):
        pod_state.step_done(pod_state.started(Worker()))


def test_a_static_pod_recreated_under_its_uid_waits_for_the_end():
    """[N7]"""
    ending = pod_state.killed(Worker(), 1, Cause.REMOVED)
    assert pod_state.recreated(ending).recreate
    finished = Worker(Phase.FINISHED, 1.0, Cause.REMOVED)
    assert pod_state.recreated(finished) == Worker()
