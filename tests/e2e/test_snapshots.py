"""`sampan snapshot` and `sampan fork`, on clusters that run."""

import json
import shutil
import subprocess

import pytest

from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


NODES = """
apiVersion: simulated.sampan.dev/v1
kind: Nodes
types: [{name: odd, count: 2, capacity: {cpu: 7, memory: 3Gi}, labels: {disk: ssd}}]
"""


@pytest.fixture
def sampan(tmp_path):
    (tmp_path / "nodes.yaml").write_text(NODES)
    nodes = ["--runtime", "simulated", "--nodes-file", str(tmp_path / "nodes.yaml")]
    process = SampanProcess(tmp_path, *nodes, "--service-cidr", "10.77.0.0/16").up()
    yield process
    process.stop()


def client(kubeconfig, *words: str) -> str:
    done = subprocess.run(
        [*sampan_command(*words), "--kubeconfig", str(kubeconfig)],
        capture_output=True, text=True, timeout=120, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(sampan, *words: str) -> str:
    done = subprocess.run(
        [*sampan_command(*words), "--data-dir", str(sampan.data_dir)],
        capture_output=True, text=True, timeout=120, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_cluster_is_brought_back_to_what_it_was(sampan):
    key = sampan.kubeconfig
    client(key, "create", "deployment", "web", "--image=nginx", "--replicas=2")
    client(key, "wait", "--for=condition=Available", "deploy/web", "--timeout=60s")
    sampan.run("snapshot", "save", "before")
    client(key, "scale", "deploy", "web", "--replicas=1")
    client(key, "create", "configmap", "extra")
    told = sampan.run("snapshot", "diff", "before")
    assert "+ ConfigMap default/extra" in told
    assert "spec.replicas: 2 → 1" in told
    assert "before" in sampan.run("snapshot", "list")
    uid = json.loads(client(key, "get", "deploy", "web", "-o", "json"))["metadata"]["uid"]
    assert "in use by process" in refused(sampan, "snapshot", "restore", "before")
    revision = int(client(key, "get", "cm", "extra", "-o", "jsonpath={.metadata.resourceVersion}"))
    sampan.stop()
    assert "does not run" in refused(sampan, "snapshot", "diff", "before")
    sampan.run("snapshot", "restore", "before")
    sampan.up()
    found = json.loads(client(key, "get", "deploy", "web", "-o", "json"))
    assert (found["spec"]["replicas"], found["metadata"]["uid"]) == (2, uid)
    assert int(found["metadata"]["resourceVersion"]) > revision
    assert "extra" not in client(key, "get", "cm", "-o", "name")
    client(key, "wait", "--for=condition=Available", "deploy/web", "--timeout=60s")
    sampan.run("snapshot", "rm", "before")
    assert "there is no snapshot" in refused(sampan, "snapshot", "rm", "before")


def test_a_fork_goes_on_beside_the_other(sampan, tmp_path):
    key, there = sampan.kubeconfig, tmp_path / "fork"
    client(key, "create", "deployment", "web", "--image=nginx", "--replicas=2")
    client(key, "wait", "--for=condition=Available", "deploy/web", "--timeout=60s")
    sampan.run("fork", "--to", str(there))
    try:
        other = there / "kubeconfig"
        # It answers before its nodes are there: the copied ones say Ready, theirs say it anew.
        columns = "custom-columns=:.metadata.name,:.status.capacity.cpu,:.metadata.labels.disk"
        nodes = client(other, "get", "nodes", "--no-headers", "-o", columns)
        assert nodes == client(key, "get", "nodes", "--no-headers", "-o", columns)
        client(other, "run", "more", "--image=nginx")
        client(other, "wait", "--for=condition=Ready", "pod/more", "--timeout=60s")
        assert client(other, "get", "nodes", "--no-headers", "-o", columns) == nodes
        assert nodes.split() == ["odd-0", "7", "ssd", "odd-1", "7", "ssd"]
        client(other, "create", "service", "clusterip", "web", "--tcp=80")
        assert "10.77." in client(
            other, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"
        )
        client(other, "delete", "pod", "more", "--now")
        client(other, "delete", "deploy", "web", "--cascade=foreground")
        assert client(other, "get", "pods", "-o", "name") == ""
        assert "web" in client(key, "get", "deploy", "-o", "name")
        assert "is not empty" in refused(sampan, "fork", "--to", str(there))
        # Another cluster's objects, as from any Kubernetes.
        text = sampan.run("snapshot", "import", "other", "--from-kubeconfig", str(other))
        assert "Secrets are not in it" in text
        assert "+ Deployment default/web" in sampan.run("snapshot", "diff", "other")
    finally:
        down(there)


def down(directory):
    command = [*sampan_command("down"), "--data-dir", str(directory)]
    subprocess.run(command, env=environment(), check=True, timeout=60)


def test_a_cluster_that_is_stopped_and_a_snapshot_can_be_forked(sampan, tmp_path):
    client(sampan.kubeconfig, "create", "configmap", "first")
    sampan.run("snapshot", "save", "early")
    client(sampan.kubeconfig, "create", "configmap", "second")
    sampan.stop()
    there = tmp_path / "fork"
    for words, names in (
        ((), {"configmap/first", "configmap/second"}),
        (("--snapshot", "early"), {"configmap/first"}),
    ):
        sampan.run("fork", "--to", str(there), *words)
        try:
            found = set(client(there / "kubeconfig", "get", "cm", "-o", "name").split())
            assert found - {"configmap/kube-root-ca.crt"} == names  # a controller writes that one
        finally:
            down(there)
            shutil.rmtree(there)
    assert "there is no snapshot" in refused(
        sampan, "fork", "--to", str(there), "--snapshot", "none"
    )
    assert not there.exists()
