"""A CSI driver as a process beside real nodes, on containerd and without [H1]."""

import os
import shutil
import tempfile
from pathlib import Path

import orjson
import pytest

from sampan.core.mounts import mounts_below
from sampan.drivers.csi.settings import NAME, TOPOLOGY_KEY
from tests.support.parts import native_runtime as native_parts
from tests.support.parts.csi_driver import CsiDriverProcess
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
FOREVER = "trap exit TERM; while :; do sleep 0.2; done"


@pytest.fixture(scope="module", params=["cri", "native"])
def node(request, cluster, runtime, archive):
    """The shared cluster, and one of the other kind."""
    if request.param == runtime:
        yield cluster
        return
    if request.param == "native" and native_parts.why_not():
        pytest.skip(native_parts.why_not())
    root = Path(tempfile.mkdtemp(prefix="sampan-csi-"))
    other = SampanProcess(root, "--runtime", request.param)
    other.up()
    other.run("image", "import", str(archive))
    yield other
    assert other.stop() == 0, other.output.read_text()
    other.reset()
    assert other.leftovers() == {}
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def driver(node):
    root = Path(tempfile.mkdtemp(prefix="sampan-drv-"))
    name = node.kubectl.get("nodes")["items"][0]["metadata"]["name"]
    process = CsiDriverProcess(node.data_dir / "kubelet", root).start(name)
    eventually(lambda: driver_names(node))
    apply(node, csi_driver())
    yield process
    process.stop()
    eventually(lambda: not driver_names(node))
    node.kubectl("delete", "csidriver", NAME)
    shutil.rmtree(root)


def driver_names(node):
    spec = node.kubectl.get("csinodes")["items"][0]["spec"]
    return [item["name"] for item in spec.get("drivers") or ()]


def csi_driver(**spec):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": NAME},
        "spec": {
            "attachRequired": False, "podInfoOnMount": True, "fsGroupPolicy": "File",
            "volumeLifecycleModes": ["Persistent", "Ephemeral"], **spec,
        },
    }  # fmt: skip


def apply(node, *objects):
    text = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).decode()
    node.kubectl("apply", "-f", "-", stdin=text)


def claimed(name, *, mode="Filesystem", **spec):
    """A volume that the driver made, and the claim that holds it."""
    shape = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeMode": mode}
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {**shape, "capacity": {"storage": "32Mi"}, **spec,
                 "csi": {"driver": NAME, "volumeHandle": name}},
    }  # fmt: skip
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {**shape, "volumeName": name, "resources": {"requests": {"storage": "32Mi"}}},
    }  # fmt: skip
    return volume, claim


def pod(name, source, command=FOREVER, *, container=None, **spec):
    main = {
        "name": "main", "image": IMAGE, "command": ["sh", "-c", command],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 1, "restartPolicy": "Never",
                 "volumes": [{"name": "v", **source}],
                 "containers": [{**main, **(container or {})}], **spec},
    }  # fmt: skip


def claim_source(name, **more):
    return {"persistentVolumeClaim": {"claimName": name, **more}}


def running(node, name):
    node.kubectl("wait", "--for=jsonpath={.status.phase}=Running", f"pod/{name}", "--timeout=60s")


def succeeded(node, name):
    def ended():
        phase = node.kubectl.get("pod", name)["status"]["phase"]
        return phase if phase in ("Succeeded", "Failed") else None

    assert eventually(ended) == "Succeeded", node.kubectl("describe", "pod", name)


def remove(node, *names):
    node.kubectl("delete", *names, "--now", "--ignore-not-found")


def left_of_csi(node):
    kubelet = node.data_dir / "kubelet"
    notes = [str(path) for path in kubelet.rglob("vol_data.json")]
    return notes + [
        place
        for place in mounts_below(str(kubelet))
        if "kubernetes.io" in place and "csi/" in place
    ]


def test_the_node_says_which_drivers_it_has_and_where_it_is(node, driver):
    shown = node.kubectl.get("nodes")["items"][0]
    name = shown["metadata"]["name"]
    assert shown["metadata"]["labels"][TOPOLOGY_KEY] == name
    marks = shown["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"]
    assert orjson.loads(marks) == {NAME: name}
    [csi_node] = node.kubectl.get("csinodes")["items"]
    assert csi_node["spec"]["drivers"] == [
        {"name": NAME, "nodeID": name, "topologyKeys": [TOPOLOGY_KEY]}
    ]
    assert csi_node["metadata"]["ownerReferences"][0]["kind"] == "Node"


def test_what_one_pod_writes_another_reads(node, driver):
    driver.make("shared")
    apply(node, *claimed("shared"))
    write = "echo hello > /v/word; mkdir -p /v/deep; id -G > /v/deep/groups"
    spec = {"securityContext": {"fsGroup": 4242, "runAsUser": 1000}}
    apply(node, pod("writer", claim_source("shared"), write, **spec))
    succeeded(node, "writer")
    mounts = [{"name": "v", "mountPath": "/v", "subPath": "deep"}]
    read = "cat /v/groups; touch /v/x 2>/dev/null && exit 1; exit 0"
    reader = {"volumeMounts": mounts}
    apply(node, pod("reader", claim_source("shared", readOnly=True), read, container=reader))
    succeeded(node, "reader")
    assert "4242" in node.kubectl("logs", "reader")
    remove(node, "pod/writer", "pod/reader", "pvc/shared", "pv/shared")
    eventually(lambda: not left_of_csi(node))


def test_an_inline_volume_is_the_pod_s_own(node, driver):
    source = {"csi": {"driver": NAME, "volumeAttributes": {"size": "5Mi", "kind": "loop"}}}
    apply(node, pod("inline", source, f"df -k /v | tail -1; touch /v/x; {FOREVER}"))
    running(node, "inline")
    made = driver.root / "volumes" / "volumes"
    assert [name for name in os.listdir(made) if name.startswith("csi-")]
    remove(node, "pod/inline")
    assert not [name for name in os.listdir(made) if name.startswith("csi-")]
    eventually(lambda: not left_of_csi(node))


def test_a_block_volume_is_a_device_in_the_container(node, driver):
    driver.make("raw", block=True)
    apply(node, *claimed("raw", mode="Block"))
    device = {"volumeMounts": [], "volumeDevices": [{"name": "v", "devicePath": "/dev/xvda"}]}
    write = "test -b /dev/xvda && echo hello | dd of=/dev/xvda conv=fsync 2>/dev/null"
    apply(node, pod("writer", claim_source("raw"), write, container=device))
    succeeded(node, "writer")
    apply(node, pod("reader", claim_source("raw"), "head -c 5 /dev/xvda", container=device))
    succeeded(node, "reader")
    assert node.kubectl("logs", "reader") == "hello"
    remove(node, "pod/writer", "pod/reader", "pvc/raw", "pv/raw")
    eventually(lambda: not left_of_csi(node))


def test_a_device_is_no_directory(node, driver):
    driver.make("raw2", block=True)
    apply(node, *claimed("raw2", mode="Block"), pod("wrong", claim_source("raw2")))
    events = ["events", "--field-selector", "involvedObject.name=wrong,reason=FailedMount"]
    eventually(lambda: node.kubectl.get(*events)["items"])
    [said, *_] = node.kubectl.get(*events)["items"]
    assert "volume v has volumeMode Block, but is specified in volumeMounts" in said["message"]
    remove(node, "pod/wrong", "pvc/raw2", "pv/raw2")


def test_a_pod_waits_for_its_driver_and_is_started_when_it_comes(node, driver):
    driver.make("early")
    driver.stop()
    eventually(lambda: not driver_names(node))
    apply(node, *claimed("early"), pod("early", claim_source("early")))
    events = ["events", "--field-selector", "involvedObject.name=early,reason=FailedMount"]
    eventually(lambda: node.kubectl.get(*events)["items"])
    [said, *_] = node.kubectl.get(*events)["items"]
    assert said["message"] == (
        'MountVolume.MountDevice failed for volume "early" : kubernetes.io/csi: '
        f"attacher.MountDevice failed to create newCsiDriverClient: driver name {NAME} not found "
        "in the list of registered CSI drivers"
    )
    driver.start(node.kubectl.get("nodes")["items"][0]["metadata"]["name"])
    running(node, "early")
    # The driver is killed, and comes back after the pod was deleted.
    driver.kill()
    node.kubectl("delete", "pod/early", "--wait=false")
    eventually(lambda: "deletionTimestamp" in str(node.kubectl.get("pod", "early")))
    driver.start(node.kubectl.get("nodes")["items"][0]["metadata"]["name"])
    node.kubectl("wait", "--for=delete", "pod/early", "--timeout=60s")
    remove(node, "pvc/early", "pv/early")
    eventually(lambda: not left_of_csi(node))
