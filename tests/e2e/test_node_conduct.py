"""What tools and users rely on when they deal with a node, with kubectl as the witness."""

import json

import pytest

from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"


def create(kubectl, name, containers, **spec):
    words = {"terminationGracePeriodSeconds": 1, "containers": containers, **spec}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": words}
    kubectl("create", "-f", "-", stdin=json.dumps(pod))


def container(command="sleep 1000", name="main", **words):
    return {"name": name, "image": IMAGE, "command": ["sh", "-c", command], **words}


def reasons(kubectl, name):
    found = kubectl.get("events", f"--field-selector=involvedObject.name={name}")
    return [one["reason"] for one in found["items"]]


def test_an_unsafe_sysctl_that_nobody_allowed_ends_the_pod(kubectl):
    unsafe = {"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]}
    create(kubectl, "unsafe", [container()], securityContext=unsafe)
    kubectl.wait_phase("unsafe", "Failed")
    assert " SysctlForbidden " in kubectl("get", "pod", "unsafe")
    eventually(lambda: "SysctlForbidden" in reasons(kubectl, "unsafe"))
    kubectl("delete", "pod", "unsafe")


def test_a_mount_made_in_one_container_is_seen_in_the_other(kubectl):
    """Where the machine's root is a private mount, too."""
    maker = "mkdir /v/x && mount -t tmpfs none /v/x && touch /v/x/seen; sleep 1000"
    mounts = {
        kind: [{"name": "v", "mountPath": "/v", "mountPropagation": kind}]
        for kind in ("Bidirectional", "HostToContainer")
    }
    create(
        kubectl,
        "spread",
        [
            container(maker, "maker", securityContext={"privileged": True},
                      volumeMounts=mounts["Bidirectional"]),
            container(name="reader", volumeMounts=mounts["HostToContainer"]),
        ],
        volumes=[{"name": "v", "emptyDir": {}}],
    )  # fmt: skip
    kubectl.wait_phase("spread", "Running")
    listing = ("exec", "spread", "-c", "reader", "--", "ls", "/v")
    eventually(lambda: "x" in kubectl(*listing))
    assert "seen" in kubectl(*listing[:-1], "/v/x")
    kubectl("delete", "pod", "spread")


def test_a_debugger_sees_the_processes_of_its_target(kubectl):
    create(kubectl, "target", [container("exec sleep 4321")])
    kubectl.wait_phase("target", "Running")
    kubectl(
        "debug", "target", f"--image={IMAGE}", "--target=main", "--container=dbg", "--",
        "sh", "-c", "cat /proc/1/cmdline; echo; sleep 1000",
    )  # fmt: skip

    def runs():
        statuses = kubectl.get("pod", "target")["status"].get("ephemeralContainerStatuses")
        return statuses and "running" in statuses[0]["state"]

    eventually(runs)
    eventually(lambda: "4321" in kubectl("logs", "target", "-c", "dbg"))
    kubectl("delete", "pod", "target")


def test_a_deletion_is_seen_at_the_nodes_own_endpoint_while_it_runs(kubectl):
    deaf = container("trap '' TERM; echo deaf; while :; do sleep 0.1; done")
    create(kubectl, "slow", [deaf], terminationGracePeriodSeconds=600)
    kubectl.wait_phase("slow", "Running")
    eventually(lambda: "deaf" in kubectl("logs", "slow"))
    kubectl("delete", "pod", "slow", "--wait=false")
    node = kubectl.get("pod", "slow")["spec"]["nodeName"]

    def seen():
        listed = json.loads(kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/pods"))
        pods = {one["metadata"]["name"]: one["metadata"] for one in listed["items"]}
        return pods.get("slow", {}).get("deletionGracePeriodSeconds") == 600

    eventually(seen)
    kubectl("delete", "pod", "slow", "--now")


def test_a_label_given_to_a_running_node_counts_for_the_next_pod(kubectl):
    node = kubectl.get("nodes")["items"][0]["metadata"]["name"]
    kubectl("label", "node", node, "color=green")
    create(kubectl, "green", [container()], nodeSelector={"color": "green"})
    kubectl.wait_phase("green", "Running")
    kubectl("label", "node", node, "color-")
    kubectl("delete", "pod", "green")


def test_logs_and_commands_of_simulated_nodes_are_answered_in_process(tmp_path):
    """Their addresses are made up: nothing is dialled there."""
    cluster = SampanProcess(tmp_path, "--runtime", "simulated", "--nodes", "3")
    cluster.up()
    try:
        kubectl = cluster.kubectl
        note = {"simulated.sampan.dev/exec-output": "pretended"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "annotations": note},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        }
        kubectl("create", "-f", "-", stdin=json.dumps(pod))
        kubectl.wait_phase("web", "Running")
        kubectl("logs", "web")
        node = kubectl.get("pod", "web")["spec"]["nodeName"]
        assert kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/healthz") == "ok"
        listed = json.loads(kubectl("get", "--raw", f"/api/v1/nodes/{node}:10250/proxy/pods"))
        assert [one["metadata"]["name"] for one in listed["items"]] == ["web"]
    finally:
        assert cluster.stop() == 0
        cluster.reset()
