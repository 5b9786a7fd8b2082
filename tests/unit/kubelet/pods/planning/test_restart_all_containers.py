"""What goes before all containers of a pod are restarted."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.kubelet.contracts.runtime import ContainerState
from sampan.kubelet.pods.plan import plan
from sampan.kubelet.pods.planning.actions import KillContainer, RemoveContainer, StartContainer
from sampan.kubelet.pods.planning.restart_all_containers import resets
from sampan.kubelet.pods.planning.starts import Restarts
from tests.support.worlds.observed_pods import NOW, container, exited_container, observed_pod
from tests.support.worlds.simulated_node import pod_named

ALL = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]
MAIN = {"name": "main", "image": "app:1"}
WATCHER = {
    "name": "watcher", "image": "app:1", "restartPolicy": "Never", "restartPolicyRules": ALL,
}  # fmt: skip
SETUP = {"name": "setup", "image": "app:1"}
SIDE = {"name": "side", "image": "app:1", "restartPolicy": "Always"}


@pytest.fixture(autouse=True)
def _with_the_gate():
    with features.used(Release("1.37")):
        yield


def stopped(name):
    return [
        KillContainer(f"{name}-0", name, "killing", grace_seconds=0.0),
        RemoveContainer(f"{name}-0"),
    ]


def test_all_go_and_what_caused_it_goes_last():
    pod = pod_named("web", containers=[WATCHER, MAIN], initContainers=[SETUP, SIDE])
    seen = observed_pod(
        exited_container("watcher", 42), container("main"), container("side"),
        exited_container("setup", 0),
    )  # fmt: skip
    assert resets(pod, seen) == [
        *stopped("main"),
        RemoveContainer("setup-0"),
        *stopped("side"),
        RemoveContainer("watcher-0"),
    ]


def test_every_instance_of_a_container_goes():
    pod = pod_named("web", containers=[WATCHER])
    seen = observed_pod(exited_container("watcher", 42, attempt=1), exited_container("watcher", 1))
    assert resets(pod, seen) == [RemoveContainer("watcher-0"), RemoveContainer("watcher-1")]


def test_what_was_only_created_is_stopped_first():
    pod = pod_named("web", containers=[MAIN])
    seen = observed_pod(container("main", state=ContainerState.CREATED))
    assert resets(pod, seen) == stopped("main")


def test_afterwards_it_begins_with_the_init_containers_and_counts_on():
    pod = pod_named("web", containers=[WATCHER], initContainers=[SETUP])
    [start] = plan(pod, observed_pod(), NOW, restarts=Restarts(counts={"setup": 3, "watcher": 3}))
    assert isinstance(start, StartContainer)
    assert (start.name, start.attempt) == ("setup", 3)
