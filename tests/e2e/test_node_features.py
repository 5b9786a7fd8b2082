"""What this runtime cannot do is refused in upstream's words, and starts nothing [N10, R1]."""

import json

import pytest

from tests.support.parts.processes import eventually

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.kubectl,
    pytest.mark.slow,
    pytest.mark.runtime("cri"),  # crun can all of it
]

IMAGE = "localhost/test/busybox:1"


def create(kubectl, name, container=None, **spec):
    main = {"name": "main", "image": IMAGE, "command": ["sleep", "1000"], **(container or {})}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [main], "terminationGracePeriodSeconds": 0, **spec},
    }
    kubectl.apply(json.dumps(pod))


@pytest.fixture
def able(cluster):
    """A containerd of 2.x can what these tests expect to be refused."""
    [node] = cluster.kubectl.get("nodes")["items"]
    if any(all(one["features"].values()) for one in node["status"]["runtimeHandlers"]):
        pytest.skip("this runtime can")


@pytest.mark.usefixtures("able")
def test_a_pod_that_wants_users_of_its_own_gets_no_sandbox(kubectl):
    create(kubectl, "own-users", hostUsers=False)
    why = "can't set `spec.hostUsers: false`, runtime does not support user namespaces"

    def told():
        events = kubectl.get("events", "--field-selector", "involvedObject.name=own-users")
        return [
            one for one in events["items"]
            if one["reason"] == "FailedCreatePodSandBox" and why in one["message"]
        ]  # fmt: skip

    eventually(told)
    assert kubectl.phase("own-users") == "Pending"
    kubectl("delete", "pod", "own-users", "--now")


@pytest.mark.usefixtures("able")
def test_a_mount_that_must_be_read_only_all_the_way_down_is_refused(kubectl):
    mount = {"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Enabled"}
    create(kubectl, "deep", {"volumeMounts": [mount]}, volumes=[{"name": "v", "emptyDir": {}}])

    def waiting():
        statuses = kubectl.get("pod", "deep")["status"].get("containerStatuses") or [{}]
        return (statuses[0].get("state") or {}).get("waiting") or {}

    eventually(lambda: waiting().get("reason") == "CreateContainerConfigError")
    assert 'volume "v" requested recursive read-only mount' in waiting()["message"]
    kubectl("delete", "pod", "deep", "--now")
    create(
        kubectl, "shallow", {"volumeMounts": [{**mount, "recursiveReadOnly": "IfPossible"}]},
        volumes=[{"name": "v", "emptyDir": {}}],
    )  # fmt: skip
    kubectl.wait_phase("shallow", "Running")
    kubectl("delete", "pod", "shallow", "--now")
