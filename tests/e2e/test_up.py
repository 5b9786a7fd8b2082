"""`sampan up` as a person uses it: without containers, in the background, and with bad input."""

import asyncio
import ipaddress
import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.parts.private_runtime import private_runtime
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]


def sampan(*arguments, code=0):
    done = subprocess.run(
        sampan_command(*arguments), capture_output=True, text=True, timeout=60,
        env=environment(), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_simulated_nodes_run_pods_without_containers(own_cluster):
    """[R3]"""
    own_cluster.up("--runtime", "simulated", "--nodes", "3")
    kubectl = own_cluster.kubectl
    assert kubectl("get", "nodes").count(" Ready ") == 3
    kubectl("create", "-f", "-", stdin=SIX_PODS)
    eventually(lambda: kubectl("get", "pods").count("Running") == 6)
    nodes = {pod["spec"]["nodeName"] for pod in kubectl.get("pods")["items"]}
    assert len(nodes) == 3
    kubectl("delete", "pods", "--all")
    assert kubectl.get("pods")["items"] == []


SIX_PODS = "---\n".join(
    f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p{i}}}\nspec: {{containers: [{{name: c, "
    "image: 'anything:1', resources: {requests: {cpu: 8}}}]}\n"
    for i in range(6)
)


def test_a_control_plane_without_nodes(own_cluster):
    """--runtime none: the API works, pods wait, and say why"""
    own_cluster.up("--runtime", "none")
    kubectl = own_cluster.kubectl
    assert kubectl.get("nodes")["items"] == []
    kubectl("run", "waits", "--image=anything:1")

    def message():
        conditions = kubectl.get("pod", "waits")["status"].get("conditions") or [{}]
        return conditions[0].get("message", "")

    eventually(lambda: "no nodes available" in message())
    kubectl("delete", "pod", "waits")
    kubectl("create", "namespace", "x")
    kubectl("create", "configmap", "c", "-n", "x")
    kubectl("delete", "namespace", "x", seconds=30)


def test_memory_store_forgets_and_sqlite_does_not(own_cluster):
    """[E1]"""
    own_cluster.up("--runtime", "none", "--store", "memory:")
    own_cluster.kubectl("create", "configmap", "a")
    own_cluster.stop()
    own_cluster.up("--runtime", "none")
    assert not own_cluster.kubectl.exists("configmap", "a")
    own_cluster.kubectl("create", "configmap", "b")
    own_cluster.kill()
    own_cluster.up("--runtime", "none")
    assert own_cluster.kubectl.exists("configmap", "b")


def test_detach_returns_when_ready_and_down_stops_it(own_cluster, tmp_path):
    kubeconfig, data = str(own_cluster.kubeconfig), str(own_cluster.data_dir)
    said = sampan(
        "up", "--detach", "--data-dir", data, "--kubeconfig", kubeconfig, "--port", "0",
        "--runtime", "simulated",
    )  # fmt: skip
    assert f"export KUBECONFIG={kubeconfig}" in said
    assert stat.S_IMODE(os.stat(kubeconfig).st_mode) == 0o600
    assert " Ready " in own_cluster.kubectl("get", "nodes")
    again = sampan("up", "--data-dir", data, "--port", "0", "--runtime", "none", code=1)
    assert "is in use by process" in again
    assert "stopped process" in sampan("down", "--data-dir", data)
    assert "nothing runs" in sampan("down", "--data-dir", data)


def test_a_port_in_use_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said = sampan(
            "up", "--data-dir", str(tmp_path / "d"), "--runtime", "none", "--port", port, code=1
        )
    assert f"port {port}" in said
    assert "--port" in said
    assert "Traceback" not in said


def test_a_data_dir_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    said = sampan("up", "--data-dir", str(tmp_path / "file" / "d"), "--runtime", "none", code=1)
    assert "--data-dir" in said
    assert "Traceback" not in said


def test_a_data_dir_of_a_newer_version_is_refused(tmp_path):
    data = tmp_path / "d"
    data.mkdir()
    (data / "format").write_text("99\n")
    said = sampan("up", "--data-dir", str(data), "--runtime", "none", code=1)
    assert "newer sampan" in said


def test_a_store_of_a_newer_version_is_refused(own_cluster):
    own_cluster.up("--runtime", "none")
    own_cluster.stop()
    with (own_cluster.data_dir / "store.db").open("r+b") as file:
        file.seek(60)  # SQLite's user_version lies here, and our format number in it
        file.write((9999).to_bytes(4, "big"))
    said = sampan(
        "up", "--data-dir", str(own_cluster.data_dir), "--runtime", "none", "--port", "0", code=1
    )
    assert "newer" in said
    assert "Traceback" not in said


def test_a_store_with_a_flipped_bit_is_refused_and_comes_back_from_a_snapshot(own_cluster):
    own_cluster.up("--runtime", "none")
    own_cluster.kubectl("create", "configmap", "kept", "--from-literal", "word=unmistakable")
    own_cluster.run("snapshot", "save", "good")
    own_cluster.stop()
    store = own_cluster.data_dir / "store.db"
    content = store.read_bytes()
    assert b"unmistakable" in content
    store.write_bytes(content.replace(b"unmistakable", b"unmistakaBle"))
    again = ("up", "--data-dir", str(own_cluster.data_dir), "--runtime", "none", "--port", "0")
    said = sampan(*again, code=1)
    assert "/registry/configmaps/default/kept is not what was written" in said
    assert "restore it from a copy, or move it away" in said
    assert "Traceback" not in said
    store.rename(store.with_name("damaged.db"))
    own_cluster.run("snapshot", "restore", "good")
    own_cluster.up("--runtime", "none")
    assert own_cluster.kubectl.get("configmap", "kept")["data"] == {"word": "unmistakable"}


def test_an_unknown_store_is_refused(tmp_path):
    said = sampan(
        "up", "--data-dir", str(tmp_path / "d"), "--runtime", "none", "--port", "0",
        "--store", "mongodb://x", code=1,
    )  # fmt: skip
    assert "mongodb" in said
    assert "Traceback" not in said


def test_a_cri_socket_where_nobody_listens_is_named(tmp_path):
    said = sampan(
        "up", "--data-dir", str(tmp_path / "d"), "--port", "0", "--runtime", "cri",
        "--cri-socket", str(tmp_path / "nobody.sock"), code=1,
    )  # fmt: skip
    assert "nobody.sock" in said
    assert "Traceback" not in said


@pytest.mark.skipif(Path("/run/systemd/system").exists(), reason="systemd runs here")
def test_slices_without_systemd_are_refused_with_advice(tmp_path):
    """[N16]"""
    said = sampan(
        "up", "--data-dir", str(tmp_path / "data"), "--port", "0", "--runtime", "cri",
        "--cgroup-driver", "systemd", code=1,
    )  # fmt: skip
    assert "--cgroup-driver systemd needs systemd as the machine's first process" in said
    assert "leave the flag out" in said


@pytest.mark.containerd
def test_a_runtime_that_already_runs_is_used(own_cluster, archive):
    """--cri-socket: sampan starts no containerd of its own, and leaves the other one running"""

    async def beside_a_runtime():
        async with private_runtime(own_cluster.root / "other") as node:
            await node.import_image(archive.read_bytes())
            await asyncio.to_thread(uses, node.daemon.socket_path)
            assert (await node.runtime.info()).ready
            assert await node.runtime.pods() == []

    def uses(socket_path):
        own_cluster.up("--cri-socket", socket_path, "--node-name", "mine")
        kubectl = own_cluster.kubectl
        kubectl("run", "web", "--image=localhost/test/busybox:1", "--", "sleep", "1000")
        kubectl.wait_phase("web", "Running")
        assert kubectl.get("pod", "web")["spec"]["nodeName"] == "mine"
        # The runtime said how it makes cgroups, so the pod has one of its own.
        assert "/kubepods/besteffort/pod" in kubectl("exec", "web", "--", "cat", "/proc/1/cgroup")
        assert not (own_cluster.data_dir / "containerd").exists()
        # Killed without a chance to tidy up: reset removes what runs, at the runtime of others too.
        own_cluster.kill()
        assert "processes" in own_cluster.leftovers()
        own_cluster.reset()
        assert own_cluster.leftovers() == {}

    asyncio.run(beside_a_runtime())


def test_the_node_has_the_name_that_it_was_given(own_cluster):
    own_cluster.up("--runtime", "simulated", "--node-name", "odd.name")
    [node] = own_cluster.kubectl.get("nodes")["items"]
    assert node["metadata"]["name"] == "odd.name"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "odd.name"


@pytest.mark.containerd
def test_a_cluster_has_the_ranges_that_it_was_given_and_keeps_them(own_cluster):
    own_cluster.up("--cluster-cidr", "10.53.0.0/20", "--service-cidr", "10.54.0.0/16")
    kubectl = own_cluster.kubectl
    assert kubectl.get("service", "kubernetes")["spec"]["clusterIP"] == "10.54.0.1"
    [node] = kubectl.get("nodes")["items"]
    pods = ipaddress.ip_network(node["spec"]["podCIDR"])
    assert pods.subnet_of(ipaddress.ip_network("10.53.0.0/20"))
    assert own_cluster.stop() == 0
    data = str(own_cluster.data_dir)
    said = sampan("up", "--data-dir", data, "--cluster-cidr", "10.55.0.0/20", code=1)
    assert "this cluster has 10.53.0.0/20, and keeps it" in said
    own_cluster.up()
    assert kubectl.get("service", "kubernetes")["spec"]["clusterIP"] == "10.54.0.1"


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (("--cluster-cidr", "10.97.0.0/16"), "overlap"),
        (("--cluster-cidr", "10.0.0.0/26"), "too small"),
        (("--service-cidr", "10.0.0.0/8"), "too large"),
    ],
)
def test_ranges_that_cannot_be_are_named(tmp_path, flags, what):
    said = sampan("up", "--data-dir", str(tmp_path / "d"), "--port", "0", *flags, code=1)
    assert what in said
    assert "Traceback" not in said


def test_reset_asks_for_yes(own_cluster):
    own_cluster.up("--runtime", "none")
    own_cluster.stop()
    said = sampan("reset", "--data-dir", str(own_cluster.data_dir), code=1)
    assert "--yes" in said
    assert own_cluster.data_dir.exists()
