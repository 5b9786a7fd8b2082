"""Services through the node's rules, in a network namespace that the test made [W1]."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from sampan.testing.parts.machines import machines
from sampan.testing.parts.processes import eventually
from sampan.testing.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"


@pytest.fixture(scope="module")
def machine():
    with machines(1) as [only]:
        yield only


@pytest.fixture(scope="module")
def world(machine, archive):
    root = Path(tempfile.mkdtemp(prefix="sampan-svc-"))
    cluster = SampanProcess(root, "--runtime", "cri", where=machine.where)
    cluster.up()
    cluster.run("image", "import", str(archive))
    yield cluster
    code = cluster.stop()
    cluster.reset()
    assert code == 0, cluster.output.read_text()
    assert "sampan" not in machine.run("nft", "list", "tables")
    assert "sampan" not in machine.run("ip", "link")
    assert "10." not in machine.run("ip", "route")
    shutil.rmtree(root)


@pytest.fixture
def kubectl(world):
    return world.kubectl


def pod(name, command, labels=None, **spec):
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": IMAGE, "command": ["sh", "-c", command]}],
            **spec,
        },
    }  # fmt: skip


def service(name, ports, selector, **spec):
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": selector, "ports": ports, **spec},
    }  # fmt: skip


def tcp_server(name, labels, port=8080):
    return pod(name, f"while true; do echo $HOSTNAME | nc -l -p {port}; done", labels)


def udp_server(name, labels, port=5353):
    return pod(name, f"while true; do echo $HOSTNAME | nc -u -l -p {port} -w 1; done", labels)


def apply(kubectl, *objects):
    kubectl.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    for obj in objects:
        if obj["kind"] == "Pod":
            kubectl.wait_phase(obj["metadata"]["name"], "Running")


def ip_of(kubectl, name):
    return kubectl.get("service", name)["spec"]["clusterIP"]


def ask_from_pod(kubectl, name, address, port):
    """What answers there; empty where nothing does."""
    command = f"nc -w 2 {address} {port} </dev/null || true"
    return kubectl("exec", name, "--", "sh", "-c", command).strip()


def ask_from(machine, address, port):
    command = f"busybox nc -w 2 {address} {port} </dev/null || true"
    return machine.run("sh", "-c", command).strip()


def test_a_cluster_ip_leads_to_every_endpoint_from_a_pod_and_from_the_node(kubectl, machine):
    labels = {"app": "web"}
    web = service("web", [{"port": 80, "targetPort": 8080}], labels)
    apply(kubectl, web, tcp_server("web-a", labels), tcp_server("web-b", labels),
          pod("client", "sleep 1000"))  # fmt: skip
    address = ip_of(kubectl, "web")

    def both(ask):
        seen = set()
        eventually(lambda: seen.add(ask()) or {"web-a", "web-b"} <= seen, 30)

    both(lambda: ask_from_pod(kubectl, "client", address, 80))
    both(lambda: ask_from(machine, address, 80))
    # An endpoint that asks its own Service reaches itself, too.
    both(lambda: ask_from_pod(kubectl, "web-a", address, 80))
    kubectl("delete", "pod", "web-a", "web-b", "--now")
    refused(kubectl, machine, address)


def refused(kubectl, machine, address):
    """No endpoints: said at once, not after a timeout."""

    def from_node():
        command = ["sh", "-c", f"busybox nc -w 5 {address} 80 </dev/null"]
        done = subprocess.run(
            [*machine.where, *command], capture_output=True, text=True, timeout=10, check=False
        )
        return "refused" in done.stderr

    eventually(from_node)
    said = kubectl.fails("exec", "client", "--", "nc", "-w", "5", address, "80")
    assert "refused" in said


def test_nothing_for_the_service_range_leaves_the_machine(kubectl, machine):
    apply(kubectl, pod("curious", "sleep 1000"))
    machine.run("nft", "add table ip watch; add chain ip watch out "
                "{ type filter hook postrouting priority 300; };"
                'add rule ip watch out oifname "eth0" ip daddr 10.96.0.0/12 counter')  # fmt: skip
    for address in ("10.96.77.77", "10.111.255.254"):
        ask_from_pod(kubectl, "curious", address, 80)
        ask_from(machine, address, 80)
        machine.run("sh", "-c", f"echo x | busybox nc -u -w 1 {address} 53 || true")
    assert "packets 0 bytes 0" in machine.run("nft", "list", "table", "ip", "watch")
    machine.run("nft", "delete", "table", "ip", "watch")
