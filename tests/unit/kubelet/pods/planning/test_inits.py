"""[N9] Initialization, case by case, as upstream's computeInitContainerActions."""

import pytest

from sampan.kubelet.contracts.probes_hook import NO_CHECKS, Checks
from sampan.kubelet.contracts.runtime import ContainerState, Role
from sampan.kubelet.pods.planning.actions import HoldBack, KillContainer, StartContainer
from sampan.kubelet.pods.planning.inits import initialization
from sampan.kubelet.pods.planning.starts import Starts
from sampan.kubelet.pods.planning.steps import Inputs
from tests.support.worlds.observed_pods import NOW, container, exited_container, observed_pod
from tests.support.worlds.simulated_node import pod_named

SETUP = {"name": "setup", "image": "app:1"}
SIDE = {"name": "side", "image": "app:1", "restartPolicy": "Always"}
LAST = {"name": "last", "image": "app:1"}
RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}


def steps(inits, *seen, checks=NO_CHECKS, policy="Always"):
    pod = pod_named("web", initContainers=list(inits), restartPolicy=policy)
    observed = observed_pod(*seen)
    found = initialization(Inputs(pod, Starts(observed, NOW), checks, {}), observed)
    return found.actions, found.goes_on, found.failed


def start(name, attempt=0, streak=0):
    return StartContainer(name, Role.SIDECAR if name == "side" else Role.INIT, attempt, streak)


def test_a_sidecar_that_crashes_lets_what_comes_after_it_go_on():
    crashed = exited_container("side", 1, attempt=1, streak=1)
    held = HoldBack("side", 10.0, NOW + 10)
    assert steps([SIDE, LAST], container("last"), crashed) == ([held], False, False)
    done = exited_container("last")
    assert steps([SIDE, LAST], done, crashed) == ([held], True, False)


def test_a_sidecar_that_crashes_before_anything_came_after_it_is_waited_for():
    crashed = exited_container("side", 1, attempt=1, streak=1)
    assert steps([SIDE, LAST], crashed) == ([HoldBack("side", 10.0, NOW + 10)], False, False)


def test_what_was_collected_before_the_last_that_was_begun_has_been():
    assert steps([SETUP, SIDE, LAST], container("last")) == ([start("side")], False, False)


def test_a_sidecar_that_was_collected_comes_back_beside_running_containers():
    assert steps([SIDE], container()) == ([start("side")], True, False)


def test_initialization_begins_with_the_first():
    assert steps([SETUP, SIDE]) == ([start("setup")], False, False)
    assert steps([]) == ([], True, False)


def test_normal_containers_that_ended_do_not_begin_it_anew():
    """Where the collector took all that was there of it."""
    assert steps([SETUP], exited_container(exit_code=1)) == ([], True, False)


@pytest.mark.parametrize(
    ("own", "policy", "exit_code", "again"),
    [
        ({}, "Always", 1, True),
        ({}, "OnFailure", 1, True),
        ({}, "Never", 1, False),
        ({"restartPolicy": "OnFailure"}, "Never", 1, True),
        ({"restartPolicy": "Never"}, "Always", 1, False),
        ({"restartPolicy": "Never", "restartPolicyRules": [RULE]}, "Never", 42, True),
        ({"restartPolicy": "Never", "restartPolicyRules": [RULE]}, "Always", 41, False),
    ],
)
def test_a_failed_init_container_asks_its_own_policy(own, policy, exit_code, again):
    """[N12]"""
    failed = exited_container("setup", exit_code)
    found = steps([SETUP | own], failed, policy=policy)
    assert found == (([start("setup", 1, 1)], False, False) if again else ([], False, True))


def test_an_init_container_of_unknown_state_is_killed_first():
    unknown = container("setup", state=ContainerState.UNKNOWN)
    why = 'Init container is in "unknown" state, try killing it before restart'
    kill = KillContainer("setup-0", "setup", why)
    assert steps([SETUP], unknown) == ([kill, start("setup", 1)], False, False)
    assert steps([SETUP], unknown, policy="Never") == ([], False, True)


@pytest.mark.parametrize("probe", ["liveness", "startup"])
def test_a_sidecars_failed_probe_is_told_in_upstreams_words(probe):
    """[N13]"""
    checks = Checks({"side-0": probe}, {"side-0": probe == "liveness"}, {})
    own = {f"{probe}Probe": {"terminationGracePeriodSeconds": 3}}
    found = steps([SIDE | own, LAST], container("side"), checks=checks)
    kill = KillContainer("side-0", "side", f"Init container side failed {probe} probe", 3.0)
    # As upstream: only what says that it has not started holds up the next.
    after = [start("last")] if probe == "liveness" else []
    assert found == ([kill, start("side", 1), *after], False, False)


def test_a_sidecar_of_another_image_is_replaced():
    found = steps([SIDE | {"image": "app:2"}], container("side"))
    kill = KillContainer("side-0", "side", "Init container side definition changed")
    assert found == ([kill, start("side", 1)], True, False)
