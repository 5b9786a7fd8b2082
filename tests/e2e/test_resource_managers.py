"""Processors of their own on real nodes, on containerd and without [H5]."""

import shutil
import tempfile
from pathlib import Path

import orjson
import pytest

from tests.support.parts import native_runtime as native_parts
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [
    pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow,
    pytest.mark.skipif(
        Path("/sys/devices/system/cpu/online").read_text().strip() == "0",
        reason="one processor cannot be shared out",
    ),
]  # fmt: skip

IMAGE = "localhost/test/busybox:1"
FOREVER = "trap exit TERM; while :; do sleep 0.2; done"
ALLOWED = "sed -n s/Cpus_allowed_list:.//p /proc/self/status"
CONFIGURATION = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
memoryManagerPolicy: Static
evictionHard: {memory.available: 100Mi}
reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]
topologyManagerPolicy: single-numa-node
"""
ALL = Path("/sys/devices/system/cpu/online").read_text().strip()
MEMORY = Path("/sys/devices/system/node/node0/meminfo")


@pytest.fixture(scope="module", params=["cri", "native"])
def node(request, archive):
    if request.param == "native" and native_parts.why_not():
        pytest.skip(native_parts.why_not())
    root = Path(tempfile.mkdtemp(prefix="sampan-cpu-"))
    (root / "kubelet.yaml").write_text(CONFIGURATION)
    own = SampanProcess(
        root, "--runtime", request.param, "--kubelet-config", str(root / "kubelet.yaml")
    )
    own.up()
    own.run("image", "import", str(archive))
    yield own
    assert own.stop() == 0, own.output.read_text()
    own.reset()
    assert own.leftovers() == {}
    shutil.rmtree(root)


def pod(name, cpu="", command=FOREVER):
    amounts = {"cpu": cpu, "memory": "32Mi"} if cpu else {}
    main = {
        "name": "main", "image": IMAGE, "command": ["sh", "-c", command],
        "resources": {"limits": amounts, "requests": amounts},
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [main]},
    }  # fmt: skip


def start(node, wanted):
    node.kubectl("apply", "-f", "-", stdin=orjson.dumps(wanted).decode())
    name = wanted["metadata"]["name"]
    eventually(lambda: node.kubectl.get("pod", name)["status"].get("phase") == "Running")


def allowed(node, name):
    return node.kubectl("exec", name, "--", "sh", "-c", ALLOWED).strip()


def remove(node, *names):
    node.kubectl("delete", "pod", *names, "--now", "--ignore-not-found")


def test_everybody_else_leaves_the_processor_of_a_guaranteed_container(node):
    start(node, pod("shared"))
    assert allowed(node, "shared") == ALL
    start(node, pod("own", "1"))
    assert allowed(node, "own") == "1"
    eventually(lambda: "1" not in allowed(node, "shared").split(","))
    # Nobody holds it back: nobody else is there.
    quota = "cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null; true"
    assert node.kubectl("exec", "own", "--", "sh", "-c", quota).split()[:1] in (
        [], ["-1"], ["max"],
    )  # fmt: skip
    start(node, pod("later"))
    assert "1" not in allowed(node, "later").split(",")
    remove(node, "own", "later")
    eventually(lambda: allowed(node, "shared") == ALL)
    remove(node, "shared")


def forget_another_machine(node):
    """A virtual machine may be given memory at any time. Then the books are another machine's: a
    start refuses them, and says that they are to be removed."""
    file = node.data_dir / "kubelet/memory_manager_state"
    tables = orjson.loads(file.read_bytes())["machineState"]["0"]["memoryMap"]
    if tables["memory"]["total"] != 1024 * int(MEMORY.read_text().split()[3]):
        file.unlink()


def test_it_is_its_own_after_a_kill_of_the_agent(node):
    start(node, pod("shared"))
    start(node, pod("own", "1"))
    node.kill()
    forget_another_machine(node)
    node.up()
    assert allowed(node, "own") == "1"
    start(node, pod("later"))
    assert "1" not in allowed(node, "later").split(",")
    remove(node, "own", "later")
    eventually(lambda: allowed(node, "shared") == ALL)
    remove(node, "shared")
