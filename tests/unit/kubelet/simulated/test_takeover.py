"""What a pod's status tells of its sandbox and containers."""

import pytest

from sampan.kubelet.contracts.runtime import ContainerState
from sampan.kubelet.contracts.spec import HASH_ANNOTATION, container_hash
from sampan.kubelet.simulated.scenario import NOTHING, with_ends_of_jobs
from sampan.kubelet.simulated.takeover import needs_no_agent, remains_of

CONTAINER = {"name": "main", "image": "app:2"}
READY = [{"type": "PodReadyToStartContainers", "status": "True"}]


def pod_with(shown, **changes):
    status = {"phase": "Running", "conditions": READY, "podIPs": [{"ip": "10.0.0.7"}]}
    return {
        "metadata": {"name": "web", "namespace": "default", "uid": "u1", **changes},
        "spec": {"containers": [CONTAINER]},
        "status": {**status, "containerStatuses": [{"name": "main", **shown}]},
    }


def running(attempt=0, **more):
    return {
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        "containerID": "simulated://abc",
        "restartCount": attempt,
        "image": "app:2",
        **more,
    }


def ended(container_id, code=1):
    return {"terminated": {"exitCode": code, "containerID": container_id}}


def test_a_running_container_keeps_id_start_and_count():
    found = remains_of(pod_with(running(2)), "/logs/web")
    (container,) = found.containers
    assert (container.id, container.attempt, container.state) == ("abc", 2, ContainerState.RUNNING)
    assert container.started_at == 1767225600.0
    assert container.log_path == "/logs/web/main/2.log"
    assert found.sandbox.ips == ("10.0.0.7",)


def test_the_one_before_ended_one_restart_earlier():
    pod = pod_with(running(2, lastState=ended("simulated://old")))
    attempts = {container.id: container.attempt for container in remains_of(pod, "").containers}
    assert attempts == {"abc": 2, "old": 1}


def test_one_that_waits_for_its_restart_is_the_one_that_was_counted():
    shown = {"state": {"waiting": {}}, "lastState": ended("simulated://old"), "restartCount": 2}
    (container,) = remains_of(pod_with(shown), "").containers
    assert (container.id, container.attempt, container.exit_code) == ("old", 2, 1)


def test_it_is_of_the_image_that_it_shows():
    (container,) = remains_of(pod_with(running(image="app:1")), "").containers
    assert container.annotations[HASH_ANNOTATION] == container_hash(
        {"name": "main", "image": "app:1"}
    )


def test_containers_of_other_runtimes_and_of_mirrors_are_not_ours():
    shown = running(containerID="containerd://abc")
    assert remains_of(pod_with(shown), "").containers == ()
    mirror = pod_with(running(), annotations={"kubernetes.io/config.mirror": "x"})
    assert remains_of(mirror, "") is None


def test_of_a_pod_that_never_began_nothing_is_left():
    pod = pod_with({"state": {"waiting": {"reason": "ContainerCreating"}}})
    pod["status"]["conditions"] = []
    assert remains_of(pod, "") is None


def test_what_runs_as_it_was_asked_for_needs_no_agent():
    assert needs_no_agent(pod_with(running(ready=True)), NOTHING)


@pytest.mark.parametrize(
    "pod",
    [
        pod_with(running(ready=False)),
        pod_with(running(ready=True, image="app:1")),
        pod_with({"state": {"waiting": {}}, "ready": False}),
        pod_with(running(ready=True), deletionTimestamp="2026-01-01T00:00:00Z"),
        pod_with(running(ready=True), generation=2),
        pod_with(running(ready=True), annotations={"simulated.sampan.dev/exit-after-seconds": "9"}),
        pod_with(running(ready=True), annotations={"kubernetes.io/config.mirror": "x"}),
    ],
)
def test_whatever_an_agent_would_do_something_about_needs_one(pod):
    assert not needs_no_agent(pod, NOTHING)


def test_a_rule_of_the_scenario_may_have_something_in_mind_for_it():
    job = {"batch.kubernetes.io/job-name": "x"}
    pod = pod_with(running(ready=True), labels=job)
    assert needs_no_agent(pod, NOTHING)
    assert not needs_no_agent(pod, with_ends_of_jobs(NOTHING))
