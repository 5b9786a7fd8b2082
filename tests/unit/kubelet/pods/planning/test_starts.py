from sampan.kubelet.contracts.runtime import ContainerState, Role
from sampan.kubelet.pods.planning.actions import HoldBack, RemoveContainer, StartContainer
from sampan.kubelet.pods.planning.starts import Starts
from tests.support.worlds.observed_pods import NOW, container, exited_container, observed_pod

MAIN = {"name": "main", "image": "app:1"}
NORMAL = Role.NORMAL


def test_what_was_only_created_is_the_same_attempt_once_more():
    """[N21]"""
    seen = observed_pod(container(attempt=2, streak=2, state=ContainerState.CREATED))
    assert Starts(seen, NOW).of(MAIN, NORMAL) == [
        RemoveContainer("main-2"),
        StartContainer("main", NORMAL, 2, 2),
    ]


def test_a_new_sandbox_does_not_end_the_wait():
    """[N12]"""
    ended = exited_container(exit_code=1, attempt=1, streak=1, ended_ago=4)
    held = HoldBack("main", 10.0, NOW + 6)
    assert Starts(observed_pod(ended), NOW).in_new_sandbox(MAIN, NORMAL) == [held]


def test_what_runs_and_will_have_been_stopped_waits_for_the_end_before_it():
    """[N12]"""
    runs, ended = container(attempt=2, streak=1), exited_container(attempt=1, ended_ago=4)
    held = HoldBack("main", 10.0, NOW + 6)
    assert Starts(observed_pod(runs, ended), NOW).in_new_sandbox(MAIN, NORMAL) == [
        StartContainer("main", NORMAL, 3, 2, held)
    ]
