"""Device plugins beside real nodes, on containerd and without [H2]."""

import json
import shutil
import tempfile
from pathlib import Path

import orjson
import pytest

from tests.support.parts import native_runtime as native_parts
from tests.support.parts.processes import Program, eventually
from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
GPU = "example.com/gpu"
FOREVER = "trap exit TERM; while :; do sleep 0.2; done"


@pytest.fixture(scope="module", params=["cri", "native"])
def node(request, archive):
    """One that the tests may kill and start again."""
    if request.param == "native" and native_parts.why_not():
        pytest.skip(native_parts.why_not())
    root = Path(tempfile.mkdtemp(prefix="sampan-dev-"))
    own = SampanProcess(root, "--runtime", request.param)
    own.up()
    own.run("image", "import", str(archive))
    yield own
    assert own.stop() == 0, own.output.read_text()
    own.reset()
    assert own.leftovers() == {}
    shutil.rmtree(root)


class Plugin:
    def __init__(self, node, *flags):
        self.node, self.flags = node, flags
        self.health = node.root / "health.json"
        self.health.write_text("{}")

    def __enter__(self):
        directory = self.node.data_dir / "kubelet" / "device-plugins"
        self.program = Program(
            [
                *sampan_command("driver"), "device-plugin", "--directory", str(directory),
                "--resource", GPU, "--devices", "2", "--health", str(self.health), *self.flags,
            ],
            self.node.root / "plugin.out",
            environment(),
        )  # fmt: skip
        eventually(lambda: offered(self.node) == ("2", "2"))
        return self

    def __exit__(self, *_):
        self.program.stop()


def offered(node):
    status = node.kubectl.get("nodes")["items"][0]["status"]
    return status["capacity"].get(GPU), status["allocatable"].get(GPU)


def pod(name, amount, command=FOREVER, **spec):
    main = {
        "name": "main", "image": IMAGE, "command": ["sh", "-c", command],
        "resources": {"limits": {GPU: str(amount)}},
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 1, "restartPolicy": "Never",
                 "containers": [main], **spec},
    }  # fmt: skip


def apply(node, *objects):
    text = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).decode()
    node.kubectl("apply", "-f", "-", stdin=text)


def phase(node, name):
    return node.kubectl.get("pod", name)["status"].get("phase")


def ended(node, name):
    eventually(lambda: phase(node, name) in ("Succeeded", "Failed"))
    assert phase(node, name) == "Succeeded", node.kubectl("describe", "pod", name)
    return node.kubectl("logs", name)


def remove(node, *names):
    node.kubectl("delete", "pod", *names, "--now", "--ignore-not-found")


def test_a_container_finds_its_device_and_the_next_pod_waits_for_it(node):
    with Plugin(node):
        look = "echo $EXAMPLE_COM_GPU; test -c /dev/gpu-device-0 && echo x > /dev/gpu-device-0"
        apply(node, pod("look", 1, look))
        assert ended(node, "look").strip() == "device-0"
        apply(node, pod("first", 2))
        eventually(lambda: phase(node, "first") == "Running")
        apply(node, pod("second", 1, "echo $EXAMPLE_COM_GPU"))
        eventually(lambda: "Insufficient example.com/gpu" in node.kubectl("describe", "pod/second"))
        # One that goes past the scheduler is refused by the node itself.
        name = node.kubectl.get("nodes")["items"][0]["metadata"]["name"]
        apply(node, pod("pushed", 1, nodeName=name))
        eventually(lambda: phase(node, "pushed") == "Failed")
        status = node.kubectl.get("pod", "pushed")["status"]
        assert status["reason"] == f"OutOf{GPU}"
        remove(node, "first")
        assert ended(node, "second").strip() in ("device-0", "device-1")
        remove(node, "look", "second", "pushed")


def test_sick_devices_are_not_offered(node):
    with Plugin(node) as plugin:
        plugin.health.write_text(json.dumps({"device-1": "Unhealthy"}))
        eventually(lambda: offered(node) == ("2", "1"))
        plugin.health.write_text("{}")
        eventually(lambda: offered(node) == ("2", "2"))
    eventually(lambda: offered(node) == ("2", "0"))  # with its plugin, all of them


def test_an_allocation_survives_the_agent(node):
    with Plugin(node):
        apply(node, pod("keeps", 1))
        eventually(lambda: phase(node, "keeps") == "Running")
        node.kill()
        node.up()
        eventually(lambda: offered(node) == ("2", "2"))
        assert phase(node, "keeps") == "Running"
        apply(node, pod("other", 1, "echo $EXAMPLE_COM_GPU"))
        assert ended(node, "other").strip() == "device-1"
        remove(node, "keeps", "other")


def test_cdi_devices_are_what_their_files_say(node):
    spec = {
        "cdiVersion": "0.5.0", "kind": "sampan.test/gpu",
        "containerEdits": {"env": ["CDI=yes"]},
        "devices": [
            {"name": f"device-{at}", "containerEdits": {
                "deviceNodes": [{"path": f"/dev/cdi-{at}", "hostPath": "/dev/zero"}],
                "mounts": [{"hostPath": "/etc/hostname", "containerPath": "/cdi-name"}]}}
            for at in range(2)
        ],
    }  # fmt: skip
    file = Path("/var/run/cdi") / "sampan-test.json"
    made = not file.parent.exists()
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(spec))
    try:
        with Plugin(node, "--cdi-kind", "sampan.test/gpu"):
            look = "echo $CDI; head -c 1 /dev/cdi-1 | wc -c; test -s /cdi-name && echo name"
            apply(node, pod("cdi", 2, look))
            assert ended(node, "cdi").split() == ["yes", "1", "name"]
            remove(node, "cdi")
    finally:
        file.unlink()
        if made:
            file.parent.rmdir()
