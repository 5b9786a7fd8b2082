"""How the status of a pod tells that all of its containers are restarted."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.kubelet.status.pod_status import Facts, has_ended, pod_status
from tests.support.worlds.observed_pods import NOW, container, exited_container, observed_pod
from tests.support.worlds.simulated_node import pod_named

ALL = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]
MAIN = {"name": "main", "image": "app:1"}
WATCHER = {
    "name": "watcher", "image": "app:1", "restartPolicy": "Never", "restartPolicyRules": ALL,
}  # fmt: skip
SETUP = {"name": "setup", "image": "app:1"}
CONDITION = "AllContainersRestarting"
REMOVED = {
    "reason": "RestartingAllContainers",
    "message": "The container is removed because RestartAllContainers in place",
}


@pytest.fixture(autouse=True)
def _with_the_gate():
    with features.used(Release("1.37")):
        yield


def pod(status=None, **spec):
    made = pod_named("web", **{"containers": [MAIN, WATCHER], "restartPolicy": "Never", **spec})
    made["metadata"]["generation"] = 1
    return made if status is None else {**made, "status": status}


def shown(wanted, seen, **facts):
    return pod_status(wanted, seen, Facts(now=NOW, **facts))


def condition(status, kind=CONDITION):
    return next((one for one in status["conditions"] if one["type"] == kind), None)


def named(status, name):
    kinds = ("initContainerStatuses", "containerStatuses")
    return next(one for kind in kinds for one in status.get(kind) or () if one["name"] == name)


RUNNING = observed_pod(container("main"), container("watcher"))
TRIGGERED = observed_pod(container("main"), exited_container("watcher", 42))


def test_only_pods_with_such_a_rule_have_the_condition():
    told = condition(shown(pod(), RUNNING))
    assert told["status"] == "False"
    assert "observedGeneration" not in told
    assert condition(shown(pod(containers=[MAIN]), observed_pod(container()))) is None


def test_an_exit_that_the_rule_names_begins_it():
    status = shown(pod(), TRIGGERED)
    told = condition(status)
    assert (told["status"], told["reason"], told["message"]) == (
        "True", "RestartAllContainersStarted", "container exited with restart policy rule",
    )  # fmt: skip
    assert status["phase"] == "Running"
    assert not has_ended(pod(), status)
    assert named(status, "watcher")["state"]["terminated"]["exitCode"] == 42


def test_another_exit_does_not():
    seen = observed_pod(container("main"), exited_container("watcher", 1))
    assert condition(shown(pod(), seen))["status"] == "False"


def test_it_goes_on_until_nothing_is_left_and_then_all_wait():
    begun = shown(pod(), TRIGGERED)
    half = observed_pod(exited_container("watcher", 42))
    assert condition(shown(pod(begun), half))["status"] == "True"
    status = shown(pod(begun), observed_pod())
    assert condition(status)["status"] == "False"
    for name in ("main", "watcher"):
        told = named(status, name)
        assert told["state"] == {"waiting": REMOVED}
        assert told["lastState"] == {"terminated": {"exitCode": 137, **REMOVED}}
        assert told["restartCount"] == 1
    assert status["phase"] == "Running"


def test_the_end_of_those_that_were_removed_stays_the_last_one():
    waiting = shown(pod(shown(pod(), TRIGGERED)), observed_pod())
    seen = observed_pod(container("main", attempt=1), container("watcher", attempt=1))
    status = shown(pod(waiting), seen)
    told = named(status, "watcher")
    assert told["lastState"]["terminated"]["reason"] == "RestartingAllContainers"
    assert told["restartCount"] == 1
    assert condition(status)["status"] == "False"
    # And after one more look.
    again = named(shown(pod(status), seen), "watcher")
    assert again["lastState"] == told["lastState"]


def test_a_pod_that_was_initialized_stays_so_while_init_containers_run_again():
    with_init = {"initContainers": [SETUP]}
    seen = observed_pod(
        container("main"), exited_container("watcher", 42), exited_container("setup", 0)
    )
    begun = shown(pod(**with_init), seen)
    assert condition(begun, "Initialized")["status"] == "True"
    waiting = shown(pod(begun, **with_init), observed_pod())
    assert named(waiting, "setup")["state"] == {"waiting": REMOVED}
    runs = shown(pod(waiting, **with_init), observed_pod(container("setup", attempt=1)))
    assert condition(runs, "Initialized")["status"] == "True"
    assert named(runs, "main")["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert named(runs, "main")["lastState"]["terminated"]["exitCode"] == 137


def test_a_pod_that_is_over_does_not_restart():
    seen = observed_pod(exited_container("main", 0), exited_container("watcher", 0))
    status = shown(pod(), seen)
    assert status["phase"] == "Succeeded"
    told = condition(status)
    assert (told["status"], told["reason"]) == ("False", "PodCompleted")


def test_without_the_gate_the_rule_restarts_nothing():
    with features.used(Release("1.35")):
        status = shown(pod(), TRIGGERED)
        assert condition(status) is None
        seen = observed_pod(exited_container("main", 0), exited_container("watcher", 42))
        assert shown(pod(), seen)["phase"] == "Failed"
