import pytest

from sampan.kubelet.contracts.verdict import Waiting
from sampan.kubelet.status.container_status import container_statuses, ephemeral_statuses
from sampan.kubelet.status.pod_status import Facts
from tests.support.worlds.observed_pods import NOW, container, exited_container, observed_pod
from tests.support.worlds.simulated_node import pod_named

FACTS = Facts(now=NOW)


def test_there_is_one_entry_per_container_in_the_order_of_the_spec():
    pod = pod_named(
        "web",
        containers=[{"name": "b", "image": "x"}, {"name": "a", "image": "x"}],
        initContainers=[{"name": "c", "image": "x"}],
    )
    inits, normals = container_statuses(pod, observed_pod(container("a")), FACTS)
    assert [one["name"] for one in inits] == ["c"]
    assert [one["name"] for one in normals] == ["b", "a"]
    assert normals[0]["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_the_restart_count_never_falls():
    pod = pod_named("web")
    pod["status"] = {"containerStatuses": [{"name": "main", "restartCount": 5}]}
    assert container_statuses(pod, observed_pod(container()), FACTS)[1][0]["restartCount"] == 5


def test_resources_are_shown_while_the_container_runs():
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    pod = pod_named("web", containers=[{"name": "main", "image": "app:1", "resources": resources}])
    one = container_statuses(pod, observed_pod(container()), FACTS)[1][0]
    assert one["allocatedResources"] == {"cpu": "1"}
    assert one["resources"] == resources


def test_a_sidecar_is_ready_while_it_runs_and_an_init_container_when_it_is_done():
    pod = pod_named(
        "web",
        initContainers=[
            {"name": "side", "image": "x", "restartPolicy": "Always"},
            {"name": "setup", "image": "x"},
        ],
    )
    inits, _ = container_statuses(
        pod, observed_pod(exited_container("setup"), container("side")), FACTS
    )
    assert [(one["ready"], one["started"]) for one in inits] == [(True, True), (True, False)]


def test_an_ephemeral_container_ends_and_stays_ended():
    pod = pod_named("web", ephemeralContainers=[{"name": "debug", "image": "x"}])
    one = ephemeral_statuses(pod, observed_pod(exited_container("debug", 1)), Facts(now=NOW))[0]
    assert one["state"]["terminated"]["exitCode"] == 1
    assert "started" not in one


@pytest.mark.parametrize(("policy", "state"), [("Always", "waiting"), ("Never", "terminated")])
def test_an_ephemeral_container_that_could_not_be_started_is_told_as_upstream(policy, state):
    pod = pod_named("web", restartPolicy=policy)
    pod["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "x"}]
    facts = Facts(now=NOW, waiting={"debug": Waiting("RunContainerError", "no such file")})
    one = ephemeral_statuses(pod, observed_pod(exited_container("debug", 128)), facts)[0]
    assert list(one["state"]) == [state]
    assert ("terminated" in one["lastState"]) == (state == "waiting")
