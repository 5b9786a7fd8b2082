"""Stop, crash, start again: nothing is lost and nothing is left over [E2, N21]."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from sampan.api.objects import uid_of
from sampan.testing.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
FOREVER = ("sh", "-c", "trap exit TERM; while :; do sleep 0.2; done")


def start_with_image(cluster, archive):
    cluster.up("--runtime", "cri")
    cluster.run("image", "import", str(archive))
    return cluster.kubectl


def run(kubectl, name):
    kubectl("run", name, f"--image={IMAGE}", "--command", "--", *FOREVER)


def container(kubectl, name):
    return kubectl.get("pod", name)["status"]["containerStatuses"][0]


def ready_again(kubectl, name):
    def check():
        status = kubectl.get("pod", name)["status"]
        return status["phase"] == "Running" and status["containerStatuses"][0]["ready"]

    eventually(check, 60)


def test_a_clean_stop_leaves_no_process_and_a_start_brings_the_same_cluster_back(
    own_cluster, archive
):
    kubectl = start_with_image(own_cluster, archive)
    run(kubectl, "web")
    kubectl.wait_phase("web", "Running")
    uid = uid_of(kubectl.get("pod", "web"))
    authority = (own_cluster.data_dir / "pki" / "ca.crt").read_bytes()
    assert own_cluster.stop() == 0
    assert "processes" not in own_cluster.leftovers()
    own_cluster.up("--runtime", "cri")
    assert uid_of(kubectl.get("pod", "web")) == uid
    assert (own_cluster.data_dir / "pki" / "ca.crt").read_bytes() == authority
    ready_again(kubectl, "web")
    kubectl("delete", "pod", "web", "--now")


def test_after_kill_9_running_containers_are_found_and_not_touched(own_cluster, archive):
    """[N21]"""
    kubectl = start_with_image(own_cluster, archive)
    run(kubectl, "web")
    kubectl.wait_phase("web", "Running")
    before = container(kubectl, "web")
    own_cluster.kill()
    own_cluster.up("--runtime", "cri")
    ready_again(kubectl, "web")
    after = container(kubectl, "web")
    assert after["containerID"] == before["containerID"]
    assert after["restartCount"] == 0
    kubectl("delete", "pod", "web", "--now")
    eventually(lambda: not kubectl.exists("pod", "web"))


def test_kill_9_while_50_pods_are_being_created_loses_nothing(own_cluster, archive, tmp_path):
    """[E2, N21] every pod that was answered is there, and every container belongs to one"""
    kubectl = start_with_image(own_cluster, archive)
    manifest = "---\n".join(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: many-{i}}}\nspec: {{"
        f"terminationGracePeriodSeconds: 1, containers: [{{name: c, image: '{IMAGE}', command: "
        "[sh, -c, 'trap exit TERM; while :; do sleep 0.5; done']}]}\n"
        for i in range(50)
    )
    path = tmp_path / "many.yaml"
    path.write_text(manifest)
    creating = kubectl.background("create", "-f", str(path), output=tmp_path / "created")
    answered = tmp_path / "created"
    eventually(lambda: answered.read_text().count("created") >= 20)
    eventually(lambda: kubectl("get", "pods").count("Running") >= 2)
    own_cluster.kill()
    creating.wait(60)
    names = {
        line.split()[0].removeprefix("pod/")
        for line in answered.read_text().splitlines()
        if line.endswith("created")
    }
    own_cluster.up("--runtime", "cri")
    there = {item["metadata"]["name"] for item in kubectl.get("pods")["items"]}
    assert names <= there
    eventually(lambda: kubectl("get", "pods").count("Running") == len(there), 180)
    kubectl("delete", "pods", "--all", "--now", seconds=180)
    eventually(lambda: not containers_of(own_cluster.data_dir), 60)


def containers_of(data_dir: Path) -> list[str]:
    """Shims that still run for this data directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if b"containerd-shim" in line and str(data_dir).encode() in line:
            found.append(line.decode(errors="replace"))
    return found


def test_a_containerd_that_dies_comes_back_and_its_containers_live_on(own_cluster, archive):
    """[N21, R1]"""
    kubectl = start_with_image(own_cluster, archive)
    run(kubectl, "web")
    kubectl.wait_phase("web", "Running")
    before = container(kubectl, "web")["containerID"]
    daemon = child_containerd(own_cluster.pid)
    os.kill(daemon, signal.SIGKILL)
    eventually(lambda: child_containerd(own_cluster.pid) not in (None, daemon))
    run(kubectl, "after")
    kubectl.wait_phase("after", "Running")
    assert container(kubectl, "web")["containerID"] == before
    assert container(kubectl, "web")["restartCount"] == 0
    kubectl("delete", "pod", "web", "after", "--now")


def child_containerd(pid: int) -> int | None:
    done = subprocess.run(
        ["ps", "-o", "pid=,comm=", "--ppid", str(pid)], capture_output=True, text=True
    )
    for line in done.stdout.splitlines():
        number, name = line.split()
        if name == "containerd":
            return int(number)
    return None


def test_two_clusters_live_side_by_side(own_cluster, cluster, archive):
    kubectl = start_with_image(own_cluster, archive)
    for each in (kubectl, cluster.kubectl):
        run(each, "twin")
    for each in (kubectl, cluster.kubectl):
        each.wait_phase("twin", "Running")
    addresses = {each.get("pod", "twin")["status"]["podIP"] for each in (kubectl, cluster.kubectl)}
    assert len(addresses) == 2
    for each in (kubectl, cluster.kubectl):
        each("delete", "pod", "twin", "--now")


def test_reset_removes_everything(own_cluster, archive):
    kubectl = start_with_image(own_cluster, archive)
    run(kubectl, "web")
    kubectl.wait_phase("web", "Running")
    own_cluster.run("reset", "--yes")
    assert not own_cluster.data_dir.exists()
    assert own_cluster.leftovers() == {}
