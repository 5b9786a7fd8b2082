"""Changes of a pod that runs, with kubectl and real containers."""

import json
from pathlib import Path

import pytest

from tests.support.parts.processes import eventually

pytestmark = [pytest.mark.kubectl, pytest.mark.containerd, pytest.mark.slow]

WEB = """
apiVersion: v1
kind: Pod
metadata: {name: grows}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/test/busybox:1
    command: [sleep, "1000"]
    resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 200m, memory: 64Mi}}
"""
MORE = {"requests": {"cpu": "200m", "memory": "48Mi"}, "limits": {"cpu": "400m", "memory": "96Mi"}}


@pytest.mark.kubectl_since(32)
def test_a_resize_changes_the_cgroup_of_a_running_container(kubectl):
    """[N6] [N16] without a restart"""
    kubectl("apply", "-f", "-", stdin=WEB)
    kubectl("wait", "--for=condition=Ready", "pod/grows", "--timeout=50s")
    before = kubectl.get("pod", "grows")["status"]["containerStatuses"][0]
    assert memory_limit(before) == 64 * 1024**2
    patch = {"spec": {"containers": [{"name": "main", "resources": MORE}]}}
    kubectl("patch", "pod", "grows", "--subresource", "resize", "-p", json.dumps(patch))

    def after():
        found = kubectl.get("pod", "grows")["status"]["containerStatuses"][0]
        return found if found["resources"] == MORE else None

    resized = eventually(after)
    assert resized["containerID"] == before["containerID"]
    assert resized["restartCount"] == 0
    assert memory_limit(resized) == 96 * 1024**2
    eventually(lambda: "ResizeCompleted" in kubectl("get", "events"))
    conditions = kubectl.get("pod", "grows")["status"]["conditions"]
    assert not [one for one in conditions if one["type"].startswith("PodResize")]
    kubectl("delete", "pod", "grows")


@pytest.mark.kubectl_since(25)
def test_debug_adds_a_container_to_a_pod_that_runs(kubectl):
    """[C6] [N9]"""
    kubectl("run", "sick", "--image=localhost/test/busybox:1", "--", "sleep", "1000")
    kubectl("wait", "--for=condition=Ready", "pod/sick", "--timeout=50s")
    kubectl("debug", "sick", "--image=localhost/test/busybox:1", "-c", "doctor", "--",
            "sh", "-c", "echo looking; sleep 1000")  # fmt: skip

    def runs():
        listed = kubectl.get("pod", "sick")["status"].get("ephemeralContainerStatuses") or [{}]
        return "running" in listed[0].get("state", {})

    eventually(runs)
    eventually(lambda: "looking" in kubectl("logs", "sick", "-c", "doctor"))
    kubectl("delete", "pod", "sick", "--grace-period=1")


def memory_limit(status):
    """Of the container's own cgroup, in whichever hierarchy this machine has."""
    identity = status["containerID"].partition("://")[2]
    names = ("memory.limit_in_bytes", "memory.max")
    for base in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")):
        for folder in base.rglob(f"*{identity}*"):
            for name in names:
                if (folder / name).exists():
                    return int((folder / name).read_text())
    raise AssertionError("the container has no cgroup")
