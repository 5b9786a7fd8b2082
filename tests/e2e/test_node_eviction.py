"""Pods that a real node ends by itself [N18].

Nothing here endangers the machine: a node's disk is a small tmpfs of its own, and memory and
process ids are "short" because the threshold says so, however much there is.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from sampan.core.elf import architecture
from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import RUNTIME, SampanProcess, registry_flags

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
LOOP = "trap exit TERM; while :; do sleep 0.1; done"
MANY_MIB = 120  # of the node's own disk
KEEP_FREE = "60Mi"


def pod(name, script, *, resources=None, mounts=(), labels=None, **spec):
    main = {"name": "main", "image": IMAGE, "command": ["sh", "-c", f"{script}; {LOOP}"]}
    main |= {"resources": resources or {}, "volumeMounts": list(mounts)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [main], "terminationGracePeriodSeconds": 1, **spec},
    }


def create(kubectl, *pods):
    items = {"apiVersion": "v1", "kind": "List", "items": pods}
    kubectl("create", "-f", "-", stdin=json.dumps(items))


def configuration(root, **fields):
    path = root / "kubelet.json"
    path.write_text(json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "evictionMonitoringPeriod": "500ms", **fields,
    }))  # fmt: skip
    return ("--kubelet-config", str(path))


def condition(kubectl, kind):
    node = kubectl.get("nodes")["items"][0]
    return next(one for one in node["status"]["conditions"] if one["type"] == kind)


def taints(kubectl):
    node = kubectl.get("nodes")["items"][0]
    return {one["key"] for one in node["spec"].get("taints") or ()}


def failed(kubectl, name):
    kubectl.wait_phase(name, "Failed")
    return kubectl.get("pod", name)["status"]


def events(kubectl, reason):
    """(name, message), oldest first."""
    found = kubectl.get("events", f"--field-selector=reason={reason}")["items"]
    found.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
    return [(one["involvedObject"]["name"], one["message"]) for one in found]


def limits(size):
    return {"limits": {"ephemeral-storage": size}}


def test_pods_beyond_their_own_limits_of_storage_are_ended_and_those_past_their_deadline(kubectl):
    """[N18] emptyDir on disk and in memory, logs, writable layers, the sum of a pod"""
    data = [{"name": "data", "mountPath": "/data"}]
    disk = [{"name": "data", "emptyDir": {"sizeLimit": "1Mi"}}]
    two = pod("adds-up", "dd if=/dev/zero of=/data/f bs=1M count=3", mounts=data,
              resources=limits("1Mi"), volumes=[{"name": "data", "emptyDir": {}}])  # fmt: skip
    other = dict(two["spec"]["containers"][0], name="other", command=["sh", "-c", LOOP])
    two["spec"]["containers"].append(other)
    create(
        kubectl,
        pod("late", "true", activeDeadlineSeconds=2),
        pod("full", "dd if=/dev/zero of=/data/f bs=1M count=5", mounts=data, volumes=disk),
        pod("writes", "dd if=/dev/zero of=/file bs=1M count=5", resources=limits("1Mi")),
        pod("talks", "dd if=/dev/zero bs=1k count=5000 | tr '\\0' x", resources=limits("2Mi")),
        two,
        pod("modest", "dd if=/dev/zero of=/data/f bs=1k count=100", mounts=data, volumes=disk,
            resources=limits("2Mi")),
    )  # fmt: skip
    assert failed(kubectl, "late")["reason"] == "DeadlineExceeded"
    status = failed(kubectl, "full")
    assert status["reason"] == "Evicted"
    assert status["message"] == 'Usage of EmptyDir volume "data" exceeds the limit "1Mi". '
    conditions = {one["type"] for one in status["conditions"]}
    assert "DisruptionTarget" not in conditions  # as upstream: that is for who did nothing wrong
    total = "Pod ephemeral local storage usage exceeds the total limit of containers {}. "
    assert failed(kubectl, "adds-up")["message"] == total.format("2Mi")
    assert failed(kubectl, "talks")["message"] == total.format("2Mi")
    assert failed(kubectl, "writes")["message"] == total.format("1Mi")
    kubectl.wait_phase("modest", "Running")
    eventually(lambda: ("writes", total.format("1Mi")) in events(kubectl, "Evicted"))
    metrics = kubectl("get", "--raw", f"/api/v1/nodes/{node_name(kubectl)}/proxy/metrics")
    counted = dict(re.findall(r'kubelet_evictions{eviction_signal="(.*)"} (.*)', metrics))
    assert float(counted["emptydirfs.limit"]) >= 1
    assert float(counted["ephemeralpodfs.limit"]) >= 3
    names = ("late", "full", "writes", "talks", "adds-up", "modest")
    kubectl("delete", "pod", *names, "--now")


def node_name(kubectl):
    return kubectl.get("nodes")["items"][0]["metadata"]["name"]


@pytest.fixture
def spare_image(workspace, registry):
    """In the registry, and with an id of its own."""
    shell = ArchiveFile(Path(shutil.which("busybox")).read_bytes())
    files = {"bin/sh": shell, "bin/sleep": shell, "spare": ArchiveFile(b"")}
    settings = ImageSettings(architecture(platform.machine()), env=("PATH=/bin",))
    archive = workspace / "spare.tar"
    archive.write_bytes(build_archive("localhost/test/spare:1", files, settings))
    return registry.push(archive, "test/spare", "1")


@pytest.fixture
def small_disk():
    """A cluster on a disk that one pod can fill."""
    root = tempfile.mkdtemp(prefix="sampan-small-")
    size = f"size={MANY_MIB}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "small", root], check=True)
    try:
        cluster = SampanProcess(Path(root))
        yield cluster
        cluster.reset()
        assert cluster.leftovers() == {}
    finally:
        subprocess.run(["umount", root], check=True)
        os.rmdir(root)


def test_a_disk_that_fills_up_costs_the_pod_that_filled_it_and_then_the_node_recovers(
    small_disk, archive, registry, spare_image
):
    """[N18] DiskPressure, its taint, its refusals, who goes, and the way back; images that nobody
    uses and that can be pulled again go first"""
    wanted = {"evictionHard": {"nodefs.available": KEEP_FREE},
              "evictionMinimumReclaim": {"nodefs.available": "1Mi"}}  # fmt: skip
    flags = configuration(small_disk.root, **wanted, evictionPressureTransitionPeriod="1h")
    small_disk.up("--runtime", RUNTIME, *registry_flags(registry.address), *flags)
    small_disk.run("image", "import", str(archive))
    kubectl = small_disk.kubectl
    mounts, volumes = [{"name": "data", "mountPath": "/data"}], [{"name": "data", "emptyDir": {}}]
    pulled = pod("pulled", "true")
    pulled["spec"]["containers"][0]["image"] = spare_image
    create(kubectl, pod("modest", "true"), pulled)
    for name in ("modest", "pulled"):
        kubectl.wait_phase(name, "Running")
    kubectl("delete", "pod", "pulled", "--now")
    assert spare_image in small_disk.run("image", "list")
    free = os.statvfs(small_disk.data_dir)
    free_mib = free.f_bavail * free.f_frsize >> 20
    assert free_mib > 65, free_mib
    fill = f"dd if=/dev/zero of=/data/f bs=1M count={free_mib - 50}"
    create(kubectl, pod("greedy", fill, mounts=mounts, volumes=volumes))
    status = failed(kubectl, "greedy")
    assert status["reason"] == "Evicted"
    assert status["message"].startswith(
        f"The node was low on resource: ephemeral-storage. Threshold quantity: {KEEP_FREE}, "
    )
    assert condition(kubectl, "DiskPressure")["reason"] == "KubeletHasDiskPressure"
    eventually(lambda: "node.kubernetes.io/disk-pressure" in taints(kubectl))
    create(kubectl, pod("forced", "true", nodeName=node_name(kubectl)))
    status = failed(kubectl, "forced")
    assert (status["reason"], status["message"]) == (
        "Evicted", "Pod was rejected: The node had condition: [DiskPressure]. ",
    )  # fmt: skip
    said = (node_name(kubectl), "Attempting to reclaim ephemeral-storage")
    eventually(lambda: said in events(kubectl, "EvictionThresholdMet"))
    images = small_disk.run("image", "list")
    assert spare_image not in images
    assert IMAGE in images
    assert RUNTIME == "native" or "pause" in images
    create(kubectl, pod("later", "true"))  # the scheduler keeps it until the taint is gone
    small_disk.kill()
    small_disk.up("--runtime", RUNTIME, *configuration(small_disk.root, **wanted))
    eventually(lambda: condition(kubectl, "DiskPressure")["status"] == "False")
    kubectl.wait_phase("later", "Running")
    assert kubectl.phase("modest") == "Running"
    kubectl("delete", "pod", "--all", "--now")


def test_short_of_memory_or_of_process_ids_pods_go_in_their_order(own_cluster, archive):
    """[N18] beyond their requests first, then by priority; critical ones never; BestEffort pods
    are not even taken"""
    own_cluster.up("--runtime", RUNTIME)
    own_cluster.run("image", "import", str(archive))
    kubectl = own_cluster.kubectl
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000,
         "metadata": {"name": "important"}},
    ]  # fmt: skip
    little, much = ({"requests": {"memory": size}} for size in ("1Ki", "500Mi"))
    # tmpfs is memory of the container: much of it is used at once, and nothing is computed.
    shm = {"mounts": [{"name": "m", "mountPath": "/m"}],
           "volumes": [{"name": "m", "emptyDir": {"medium": "Memory"}}]}  # fmt: skip
    use = "dd if=/dev/zero of=/m/f bs=1M count=30"
    create(
        kubectl,
        *classes,
        pod("greedy", use, resources=little, **shm),
        pod("small", "true", resources=little),
        pod("important", use, resources=little, priorityClassName="important", **shm),
        pod("within", "true", resources=much),
    )
    critical = pod("critical", "true", resources=little, priorityClassName="system-node-critical")
    kubectl("create", "-n", "kube-system", "-f", "-", stdin=json.dumps(critical))
    for name in ("greedy", "small", "important", "within"):
        kubectl.wait_phase(name, "Running")
    kubectl.wait_phase("critical", "Running", "kube-system")
    own_cluster.kill()  # its containers live on
    # A soft one: what hard ones keep free is not given to pods in the first place.
    flags = configuration(
        own_cluster.root,
        evictionSoft={"memory.available": "1Ti"},
        evictionSoftGracePeriod={"memory.available": "500ms"},
    )
    own_cluster.up("--runtime", RUNTIME, *flags)
    for name in ("greedy", "small", "important", "within"):
        assert failed(kubectl, name)["reason"] == "Evicted"
    evicted = events(kubectl, "Evicted")
    assert [name for name, _ in evicted] == ["greedy", "small", "important", "within"]
    low = "The node was low on resource: memory. Threshold quantity: 1Ti, available: "
    assert evicted[0][1].startswith(low)
    assert "Container main was using 3" in evicted[0][1]
    assert evicted[0][1].endswith(", request is 1Ki, has larger consumption of memory. ")
    assert kubectl.phase("critical", "kube-system") == "Running"
    assert condition(kubectl, "MemoryPressure")["status"] == "True"
    eventually(lambda: "node.kubernetes.io/memory-pressure" in taints(kubectl))
    create(kubectl, pod("best-effort", "true", nodeName=node_name(kubectl)))
    assert failed(kubectl, "best-effort")["message"] == (
        "Pod was rejected: The node had condition: [MemoryPressure]. "
    )
    own_cluster.kill()
    flags = configuration(own_cluster.root, evictionHard={"pid.available": "10G"})
    own_cluster.up("--runtime", RUNTIME, *flags)
    eventually(lambda: condition(kubectl, "PIDPressure")["status"] == "True")
    assert condition(kubectl, "MemoryPressure")["status"] == "False"
    eventually(
        lambda: ("Attempting to reclaim pids") in str(events(kubectl, "EvictionThresholdMet"))
    )
    assert kubectl.phase("critical", "kube-system") == "Running"
