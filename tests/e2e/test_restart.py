"""Stop, crash, start again: nothing is lost and nothing is left over [E2, N21]."""

import json
import os
import signal
import subprocess
import time
from glob import glob
from pathlib import Path

import pytest

from sampan.api.objects import uid_of
from tests.support.parts.processes import Program, eventually
from tests.support.parts.sampan_process import RUNTIME, SampanProcess, environment, sampan_command

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
FOREVER = ("sh", "-c", "trap exit TERM; while :; do sleep 0.2; done")


def start_with_image(cluster, archive, runtime=RUNTIME):
    cluster.up("--runtime", runtime)
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
    own_cluster.up("--runtime", RUNTIME)
    assert uid_of(kubectl.get("pod", "web")) == uid
    assert (own_cluster.data_dir / "pki" / "ca.crt").read_bytes() == authority
    ready_again(kubectl, "web")
    kubectl("delete", "pod", "web", "--now")


def test_what_a_clean_stop_has_ended_is_not_called_available(own_cluster, archive):
    """[N21] else the next start would show a Deployment available before its containers are"""
    kubectl = start_with_image(own_cluster, archive)
    kubectl("create", "deployment", "web", f"--image={IMAGE}", "--replicas=2", "--", *FOREVER)
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert own_cluster.stop() == 0
    # Nobody runs containers, and nobody corrects what is written of them.
    own_cluster.up("--runtime", "none", "--controllers", "*,-deployment,-replicaset")
    status = kubectl.get("deployment", "web")["status"]
    assert (status["replicas"], status.get("availableReplicas", 0)) == (2, 0)
    conditions = {one["type"]: one["status"] for one in status["conditions"]}
    assert conditions["Available"] == "False"
    own_cluster.stop()
    own_cluster.up("--runtime", RUNTIME)
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert kubectl.get("deployment", "web")["status"]["availableReplicas"] == 2
    kubectl("delete", "deployment", "web", "--now")


def test_after_kill_9_running_containers_are_found_and_not_touched(own_cluster, archive):
    """[N21]"""
    kubectl = start_with_image(own_cluster, archive)
    run(kubectl, "web")
    kubectl.wait_phase("web", "Running")
    before = container(kubectl, "web")
    own_cluster.kill()
    own_cluster.up("--runtime", RUNTIME)
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
    own_cluster.up("--runtime", RUNTIME)
    there = {item["metadata"]["name"] for item in kubectl.get("pods")["items"]}
    assert names <= there
    eventually(lambda: kubectl("get", "pods").count("Running") == len(there), 180)
    kubectl("delete", "pods", "--all", "--now", seconds=180)
    eventually(lambda: not containers_of(own_cluster.data_dir), 60)


def containers_of(data_dir: Path) -> list[str]:
    """What watches containers, and still runs for this data directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        monitor = line.partition(b"\0")[0].endswith((b"containerd-shim-runc-v2", b"conmon"))
        if monitor and str(data_dir).encode() in line:
            found.append(line.decode(errors="replace"))
    return found


def test_a_containerd_that_dies_comes_back_and_its_containers_live_on(own_cluster, archive):
    """[N21, R1]"""
    kubectl = start_with_image(own_cluster, archive, "cri")
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


def pod(name, script="true", *, container=None, labels=None, **spec):
    loop = f"trap exit TERM; {script}; while :; do sleep 0.1; done"
    main = {"name": "main", "image": IMAGE, "command": ["sh", "-c", loop], **(container or {})}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": name, "labels": labels or {},
            "annotations": {"probes.sampan.dev/period-seconds": "0.3"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [main], **spec},
    }  # fmt: skip


def create(kubectl, *objects):
    kubectl("create", "-f", "-", stdin=json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": objects}))  # fmt: skip


def ready_since(kubectl, name):
    conditions = kubectl.get("pod", name)["status"].get("conditions") or ()
    ready = next((one for one in conditions if one["type"] == "Ready"), {})
    return ready.get("status"), ready.get("lastTransitionTime")


@pytest.fixture
def shared(tmp_path):
    """A directory that pods see as /shared."""
    tmp_path.chmod(0o777)
    volume = {"name": "shared", "hostPath": {"path": str(tmp_path), "type": "Directory"}}
    mounts = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    return tmp_path, {"volumes": [volume]}, mounts


def probed(kind, command, **words):
    probe = {"exec": {"command": command}, "failureThreshold": 1, **words}
    return {f"{kind}Probe": probe}


@pytest.mark.parametrize("victim", ["sampan", "containerd"])
def test_kill_9_in_the_middle_of_starts_ends_hooks_and_probes(own_cluster, archive, shared, victim):
    """[N11, N13, N21] whoever is killed: what ends goes on to end within its grace, what waits
    goes on to wait, what is ready stays ready, restarts are not forgotten"""
    place, volumes, mounts = shared
    runtime = "cri" if victim == "containerd" else RUNTIME
    kubectl = start_with_image(own_cluster, archive, runtime)
    slow = "touch /shared/hook; sleep 3; touch /shared/hook-ended"
    hook = {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", slow]}}}, **mounts}
    deaf = {"command": ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]}
    late = {"env": [{"name": "WORD", "valueFrom": {"configMapKeyRef": {
        "name": "late", "key": "word"}}}]}  # fmt: skip
    create(
        kubectl,
        pod("hook", container=hook, terminationGracePeriodSeconds=30, **volumes),
        pod("deaf", container=deaf, terminationGracePeriodSeconds=4),
        pod("sick", container=probed("liveness", ["false"])),
        pod("ready", container=probed("readiness", ["true"])),
        pod("unready", container=probed("readiness", ["false"])),
        pod("late", container=late),
    )
    for name in ("hook", "deaf", "unready"):
        kubectl.wait_phase(name, "Running")
    eventually(lambda: container(kubectl, "sick")["restartCount"] >= 1)
    eventually(lambda: ready_since(kubectl, "ready")[0] == "True")
    before = ready_since(kubectl, "ready")
    began = time.monotonic()
    kubectl("delete", "pod", "hook", "deaf", "--wait=false")
    create(kubectl, *(pod(f"new-{number}") for number in range(4)))
    eventually((place / "hook").exists)
    kill(own_cluster, victim)
    eventually(lambda: not kubectl.exists("pod", "hook", "deaf"))
    assert time.monotonic() - began > 3.9  # not before its grace
    if victim == "sampan":  # a hook that loses its runtime has failed, as upstream
        assert (place / "hook-ended").exists()
    for number in range(4):
        ready_again(kubectl, f"new-{number}")
    assert ready_since(kubectl, "ready") == before
    assert ready_since(kubectl, "unready")[0] == "False"
    assert container(kubectl, "sick")["restartCount"] >= 1
    kubectl("create", "configmap", "late", "--from-literal=word=x")
    ready_again(kubectl, "late")
    kubectl("delete", "pod", "--all", "--now")
    eventually(lambda: not containers_of(own_cluster.data_dir))


def kill(cluster, victim):
    if victim == "sampan":
        cluster.kill()
        cluster.up("--runtime", RUNTIME)
        return
    daemon = child_containerd(cluster.pid)
    os.kill(daemon, signal.SIGKILL)
    eventually(lambda: child_containerd(cluster.pid) not in (None, daemon))


def test_pods_that_were_deleted_while_the_node_agent_was_dead_leave_nothing(
    own_cluster, archive, shared
):
    """[N3, N15, N21] their containers, mounts, directories and cgroups are found and removed; those
    of others are not touched"""
    place, volumes, mounts = shared
    own_cluster.up("--runtime", "none")
    kubectl = own_cluster.kubectl
    node = SampanProcess(own_cluster.root / "two")
    flags = ("--join", str(own_cluster.data_dir), "--node-name", "two", "--port", "0")
    command = [*sampan_command("kubelet"), "--data-dir", str(node.data_dir), *flags]
    command += ["--runtime", RUNTIME]
    agent = Program(command, node.output, environment())
    try:
        eventually(lambda: " Ready " in kubectl("get", "nodes"))
        node.run("image", "import", str(archive))
        memory = {"name": "memory", "emptyDir": {"medium": "Memory"}}
        inside = [*mounts["volumeMounts"], {"name": "memory", "mountPath": "/m"},
                  {"name": "shared", "mountPath": "/sub", "subPath": "sub"}]  # fmt: skip
        both = {"volumes": [*volumes["volumes"], memory]}
        keep = "echo kept > /sub/file; echo x > /m/x"
        for name in ("stays", "goes"):
            create(kubectl, pod(name, keep, container={"volumeMounts": inside}, **both))
        for name in ("stays", "goes"):
            kubectl.wait_phase(name, "Running")
        uids = {name: uid_of(kubectl.get("pod", name)) for name in ("stays", "goes")}
        before = container(kubectl, "stays")
        assert len(mounts_of(uids["goes"])) == 3  # memory, token, sub path
        agent.kill()
        kubectl("delete", "pod", "goes", "--grace-period=0", "--force")
        assert mounts_of(uids["goes"])
        agent = Program(command, node.output, environment())
        directory = node.data_dir / "kubelet" / "pods" / uids["goes"]
        eventually(lambda: not directory.exists() and not mounts_of(uids["goes"]))
        eventually(lambda: len(containers_of(node.data_dir)) == 1)
        assert not glob(f"/sys/fs/cgroup/**/pod{uids['goes']}", recursive=True)
        assert (place / "sub" / "file").read_text() == "kept\n"
        assert container(kubectl, "stays") == before
        assert len(mounts_of(uids["stays"])) == 3
        agent.stop()
    finally:
        if agent.process.poll() is None:
            agent.kill()
        node.reset()
    assert node.leftovers() == {}


def mounts_of(uid):
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if f"/kubelet/pods/{uid}/" in line]


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
