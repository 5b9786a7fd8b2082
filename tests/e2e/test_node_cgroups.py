"""The kernel's limits of real pods, with kubectl as the witness [N16]."""

import json
import os
from glob import glob
from pathlib import Path

import pytest

from sampan.api.quantity import value_of
from sampan.kubelet.cgroups.limits import root_of
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import RUNTIME

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
MOUNT = Path("/sys/fs/cgroup")
SLEEP = "trap exit TERM; while :; do sleep 0.1; done"


def create(kubectl, name, command, resources=None, whole=None, **spec):
    container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", command]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{**container, "resources": resources or {}}], **spec},
    }
    if whole:
        pod["spec"]["resources"] = whole
    kubectl("create", "-f", "-", stdin=json.dumps(pod))


def folders(cluster, uid):
    """In every hierarchy; others come and go meanwhile."""
    root = root_of(cluster.data_dir)
    patterns = (f"{root[1:]}/kubepods", f"*{root}/kubepods")
    wanted = (f"{MOUNT}/{pattern}/**/pod{uid}" for pattern in patterns)
    found = (path for pattern in wanted for path in glob(pattern, recursive=True))
    return [Path(path) for path in found if os.path.isdir(path)]


def read(cluster, uid, v1, v2):
    files = [path / name for path in folders(cluster, uid) for name in (v1, v2)]
    return next(file.read_text().strip() for file in files if file.exists())


def test_a_pod_has_its_limits_in_the_kernel_and_leaves_none_of_it(cluster, kubectl):
    resources = {"requests": {"cpu": "250m"}, "limits": {"cpu": "500m", "memory": "64Mi"}}
    create(kubectl, "limited", SLEEP, resources, terminationGracePeriodSeconds=1)
    kubectl.wait_phase("limited", "Running")
    uid = kubectl.get("pod", "limited")["metadata"]["uid"]
    found = folders(cluster, uid)
    assert found
    assert all("/kubepods/burstable/" in str(path) for path in found)
    assert read(cluster, uid, "memory.limit_in_bytes", "memory.max") == str(64 << 20)
    assert read(cluster, uid, "cpu.shares", "cpu.weight") in ("256", "10")
    assert read(cluster, uid, "cpu.cfs_quota_us", "cpu.max").split()[0] == "50000"
    assert read(cluster, uid, "pids.max", "pids.max") == "4096"
    # The containers are inside: what the pod's folder counts is what they use.
    assert int(read(cluster, uid, "memory.usage_in_bytes", "memory.current")) > 0
    kubectl("delete", "pod", "limited")
    assert folders(cluster, uid) == []  # gone before the API let go of the pod


def test_a_container_that_takes_too_much_memory_is_killed_and_says_so(kubectl):
    create(kubectl, "greedy", "exec tail /dev/zero", {"limits": {"memory": "16Mi"}},
           restartPolicy="Never")  # fmt: skip
    kubectl.wait_phase("greedy", "Failed")
    state = kubectl.get("pod", "greedy")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (137, "OOMKilled")
    kubectl("delete", "pod", "greedy")


def test_a_fork_bomb_is_held_by_the_pods_limit(cluster, kubectl):
    # The shell that cannot fork ends; its children stay, and the pod with them.
    bomb = (
        "until [ -f /go ]; do sleep 0.1; done; sh -c 'while :; do sleep 30 & done'; exec sleep 1000"
    )
    create(kubectl, "bomb", bomb, restartPolicy="Never", terminationGracePeriodSeconds=0)
    kubectl.wait_phase("bomb", "Running")
    uid = kubectl.get("pod", "bomb")["metadata"]["uid"]
    for path in folders(cluster, uid):
        if (path / "pids.max").exists():
            (path / "pids.max").write_text("64")  # the machine of this test is small
    kubectl("exec", "bomb", "--", "touch", "/go")
    eventually(lambda: "can't fork" in kubectl("logs", "bomb"))
    assert int(read(cluster, uid, "pids.current", "pids.current")) <= 64
    create(kubectl, "neighbour", "exit 0", restartPolicy="Never")
    kubectl.wait_phase("neighbour", "Succeeded")
    kubectl("delete", "pod", "bomb", "neighbour")
    # With a grace of 0 the object goes at once, and the node clears up behind it.
    eventually(lambda: folders(cluster, uid) == [])


RESERVING = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
kubeReserved: {cpu: 300m, memory: 100Mi}
systemReserved: {cpu: 200m, memory: 50Mi}
evictionHard: {memory.available: 50Mi}
maxPods: 17
"""


def test_pods_together_get_what_the_node_does_not_keep(own_cluster):
    """[N16, N17] allocatable in the API, and as the kernel's limit of all pods"""
    config = own_cluster.root / "kubelet.yaml"
    config.write_text(RESERVING)
    own_cluster.up("--runtime", RUNTIME, "--kubelet-config", str(config))
    [node] = own_cluster.kubectl.get("nodes")["items"]
    capacity, allocatable = node["status"]["capacity"], node["status"]["allocatable"]
    assert milli(capacity["cpu"]) - milli(allocatable["cpu"]) == 500
    assert size(capacity["memory"]) - size(allocatable["memory"]) == 200 << 20
    assert (capacity["pods"], allocatable["pods"]) == ("17", "17")
    root = root_of(own_cluster.data_dir)
    limits = [
        int(path.read_text()) for path in MOUNT.glob(f"*{root}/kubepods/memory.limit_in_bytes")
    ] or [int((MOUNT / root[1:] / "kubepods/memory.max").read_text())]
    assert limits[0] == (size(capacity["memory"]) - (150 << 20)) & ~4095
    handlers = node["status"]["runtimeHandlers"]
    if RUNTIME == "cri":
        nothing = {"recursiveReadOnlyMounts": False, "userNamespaces": False}
        assert handlers == [{"name": "", "features": nothing}]
    else:
        assert [one["name"] for one in handlers] == ["", "crun"]
        assert handlers[0]["features"]["recursiveReadOnlyMounts"]
    own_cluster.stop()


def milli(text):
    return value_of(text).milli()


def size(text):
    return value_of(text).value()


def test_a_pods_own_resources_bind_all_of_its_containers(cluster, kubectl):
    """[N10, N16] pod-level resources"""
    resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "300m", "memory": "64Mi"}}
    create(kubectl, "whole", SLEEP, whole=resources, terminationGracePeriodSeconds=0)
    kubectl.wait_phase("whole", "Running")
    pod = kubectl.get("pod", "whole")
    assert pod["status"]["qosClass"] == "Burstable"
    uid = pod["metadata"]["uid"]
    assert read(cluster, uid, "memory.limit_in_bytes", "memory.max") == str(64 << 20)
    inside = kubectl(
        "exec", "whole", "--", "sh", "-c",
        "cat /sys/fs/cgroup/memory/memory.limit_in_bytes || cat /sys/fs/cgroup/memory.max",
    )  # fmt: skip
    assert inside.strip() == str(64 << 20)
    kubectl("delete", "pod", "whole", "--now")
