"""`sampan up --with csi`: a real driver of our own, with all that it needs [H1]."""

import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path

import orjson
import pytest

from sampan.drivers.csi.loop_devices import find_below
from tests.support.parts import native_runtime as native_parts
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
SNAPSHOTS = "snapshot.storage.k8s.io"


@pytest.fixture(scope="module", params=["cri", "native"])
def node(request, archive):
    if request.param == "native" and native_parts.why_not():
        pytest.skip(native_parts.why_not())
    root = Path(tempfile.mkdtemp(prefix="sampan-with-"))
    own = SampanProcess(root, "--runtime", request.param, "--with", "csi")
    own.up()
    own.run("image", "import", str(archive))
    yield own
    assert own.stop() == 0, own.output.read_text()
    own.reset()
    assert own.leftovers() == {}
    shutil.rmtree(root)


def claim(name, storage_class="csi", **spec):
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class,
                 "resources": {"requests": {"storage": "64Mi"}}, **spec},
    }  # fmt: skip


def pod(name, claim, command):
    main = {"name": "main", "image": IMAGE, "command": ["sh", "-c", command],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]}  # fmt: skip
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 1, "restartPolicy": "Never",
                 "containers": [main], "volumes": [volume]},
    }  # fmt: skip


def block_pod(name, claim, command):
    made = pod(name, claim, command)
    [main] = made["spec"]["containers"]
    del main["volumeMounts"]
    main["volumeDevices"] = [{"name": "data", "devicePath": "/dev/data"}]
    return made


def snapshot(name, source):
    return {
        "apiVersion": f"{SNAPSHOTS}/v1", "kind": "VolumeSnapshot", "metadata": {"name": name},
        "spec": {"volumeSnapshotClassName": "csi", "source": {"persistentVolumeClaimName": source}},
    }  # fmt: skip


def apply(node, *objects):
    text = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).decode()
    node.kubectl("apply", "-f", "-", stdin=text)


def said(node, name):
    eventually(lambda: node.kubectl.get("pod", name)["status"].get("phase") == "Succeeded")
    return node.kubectl("logs", name).strip()


def remove(node, *things):
    node.kubectl("delete", *things, "--now", "--ignore-not-found")
    eventually(lambda: not node.kubectl.get("pv")["items"])


def drivers(node):
    """Processes of this cluster's driver."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if "driver" in words and any(str(node.data_dir) in word for word in words):
                found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("storage_class", ["csi", "csi-loop"])
def test_a_claim_is_served_copied_grown_and_gone(node, storage_class):
    apply(node, claim("one", storage_class), pod("writes", "one", "echo hello > /data/file"))
    assert said(node, "writes") == ""
    apply(node, snapshot("kept", "one"))
    eventually(
        lambda: (node.kubectl.get("volumesnapshot", "kept").get("status") or {}).get("readyToUse")
    )
    from_snapshot = {"apiGroup": SNAPSHOTS, "kind": "VolumeSnapshot", "name": "kept"}
    from_claim = {"kind": "PersistentVolumeClaim", "name": "one"}
    apply(
        node,
        claim("restored", storage_class, dataSource=from_snapshot),
        claim("cloned", storage_class, dataSource=from_claim),
        pod("reads-snapshot", "restored", "cat /data/file"),
        pod("reads-clone", "cloned", "cat /data/file"),
    )
    assert [said(node, name) for name in ("reads-snapshot", "reads-clone")] == ["hello", "hello"]
    more = '{"spec":{"resources":{"requests":{"storage":"96Mi"}}}}'
    node.kubectl("patch", "pvc", "one", "-p", more)
    apply(node, pod("looks", "one", "cat /data/file; df -m /data | tail -1"))
    words = said(node, "looks").split()
    assert words[0] == "hello"
    eventually(lambda: node.kubectl.get("pvc", "one")["status"]["capacity"]["storage"] == "96Mi")
    node.kubectl("delete", "volumesnapshot", "kept")
    eventually(lambda: not node.kubectl.get("volumesnapshotcontents")["items"])
    node.kubectl("delete", "pods", "--all", "--now")
    remove(node, "pvc", "one", "restored", "cloned")


def test_attributes_are_changed_by_their_class(node):
    gold = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass",
            "metadata": {"name": "gold"}, "driverName": "csi.sampan.dev",
            "parameters": {"tier": "gold"}}  # fmt: skip
    apply(node, gold, claim("one"), pod("uses", "one", "true"))
    said(node, "uses")
    node.kubectl("patch", "pvc", "one", "-p", '{"spec":{"volumeAttributesClassName":"gold"}}')
    eventually(
        lambda: (
            node.kubectl.get("pvc", "one")["status"].get("currentVolumeAttributesClassName")
            == "gold"
        )
    )
    node.kubectl("delete", "pod", "uses", "--now")
    remove(node, "pvc", "one")
    node.kubectl("delete", "volumeattributesclass", "gold")


def test_more_than_there_is_is_not_scheduled(node):
    """By CSIStorageCapacity."""
    huge = claim("huge", resources={"requests": {"storage": "900Ti"}})
    eventually(lambda: node.kubectl.get("csistoragecapacities", "-A")["items"])
    apply(node, huge, pod("waits", "huge", "true"))
    eventually(
        lambda: "did not have enough free storage" in node.kubectl("describe", "pod", "waits")
    )
    remove(node, "pod/waits", "pvc/huge")


def test_the_driver_comes_back_after_a_kill(node):
    apply(node, claim("one"), pod("before", "one", "echo kept > /data/file"))
    said(node, "before")
    [old] = drivers(node)
    os.kill(old, signal.SIGKILL)
    eventually(lambda: [pid for pid in drivers(node) if pid != old])
    apply(node, pod("after", "one", "cat /data/file"))
    assert said(node, "after") == "kept"
    node.kubectl("delete", "pods", "--all", "--now")
    remove(node, "pvc", "one")


def test_a_block_device_is_used_and_goes_with_its_cluster(node):
    """It is in use when the cluster ends; what is left after that is looked at by the fixture."""
    write = "echo hello | dd of=/dev/data bs=512 conv=sync 2>/dev/null"
    read = "dd if=/dev/data bs=6 count=1 2>/dev/null"  # a line: others are not logged at once
    asked = claim("raw", "csi-loop", volumeMode="Block")
    apply(
        node, asked, block_pod("uses", "raw", f"{write}; {read}; trap exit TERM; sleep 1000 & wait")
    )
    eventually(lambda: node.kubectl.get("pod", "uses")["status"].get("phase") == "Running")
    eventually(lambda: node.kubectl("logs", "uses").strip() == "hello")
    assert find_below(str(node.data_dir))
