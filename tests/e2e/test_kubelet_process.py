"""`sampan kubelet`: a node as a process of its own, with an API server elsewhere, or with none."""

import json
import shutil
import ssl
import tempfile
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.support.parts.kubectl import KubectlFailure
from tests.support.parts.leftovers import leftovers
from tests.support.parts.processes import Program, eventually
from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]

WEB = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: IMAGE, command: [sleep, "1000"]}]
"""


LATE = "apiVersion: v1\nkind: Node\nmetadata: {name: late}\n"


@contextmanager
def kubelet(data_dir, *flags):
    ready = data_dir.with_suffix(".ready")
    ready.unlink(missing_ok=True)
    program = Program(
        [
            *sampan_command("kubelet"), "--data-dir", str(data_dir), "--port", "0",
            "--ready-file", str(ready), *flags,
        ],
        data_dir.with_suffix(".out"),
        environment(),
    )  # fmt: skip
    try:
        program.wait_until(ready.exists)
        yield program
    finally:
        assert program.stop() == 0, program.tail()


def test_a_node_joins_a_cluster_over_https_and_is_tolerant_of_its_absence(own_cluster, tmp_path):
    """[N17] [N22] labels and taints, its own static pods, and the cluster may go and come back"""
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "web.yaml").write_text(WEB.replace("IMAGE", "app:1"))
    own_cluster.up("--runtime", "none")
    kubectl = own_cluster.kubectl
    flags = (
        "--join", str(own_cluster.data_dir), "--node-name", "two", "--runtime", "simulated",
        "--node-labels", "disk=ssd,a=b", "--register-with-taints", "own=yes:NoSchedule",
        "--manifests", str(manifests),
    )  # fmt: skip
    with kubelet(tmp_path / "two", *flags):
        eventually(lambda: " Ready " in kubectl("get", "nodes"))
        node = kubectl.get("node", "two")
        assert node["metadata"]["labels"]["disk"] == "ssd"
        assert {"key": "own", "value": "yes", "effect": "NoSchedule"} in node["spec"]["taints"]
        eventually(lambda: kubectl.get("node", "two")["spec"].get("podCIDR") == "10.244.0.0/24")
        eventually(lambda: "Running" in kubectl("get", "pods"))
        assert kubectl.get("pods")["items"][0]["metadata"]["name"] == "web-two"
        own_cluster.stop()
        (manifests / "other.yaml").write_text(WEB.replace("IMAGE", "app:1").replace("web", "more"))
        own_cluster.up("--runtime", "none")
        eventually(lambda: kubectl("get", "pods").count("Running") == 2)
        kubectl("delete", "pod", "web-two", "--wait=false")
        eventually(lambda: kubectl("get", "pods").count("Running") == 2)


def test_a_node_in_another_process_tells_its_steps_of_a_pods_trace(own_cluster, tmp_path):
    """[X1]"""
    own_cluster.up("--runtime", "none")
    kubectl = own_cluster.kubectl
    flags = ("--join", str(own_cluster.data_dir), "--node-name", "two", "--runtime", "simulated")
    with kubelet(tmp_path / "two", *flags):
        eventually(lambda: " Ready " in kubectl("get", "nodes"))
        kubectl("run", "web", "--image=app:1")
        path = "/sampan/v1/trace/pods/default/web"
        eventually(lambda: "start web" in kubectl("get", "--raw", path))
        lanes = {
            span["lane"] for span in json.loads(kubectl("get", "--raw", path))["traces"][0]["spans"]
        }
        assert lanes == {"apiserver", "scheduler", "kubelet"}


def test_a_node_that_may_not_register_waits_for_its_object(own_cluster, tmp_path):
    """[N17] --register-node=false, with an administrator's kubeconfig"""
    own_cluster.up("--runtime", "none")
    kubectl = own_cluster.kubectl
    flags = ("--kubeconfig", str(own_cluster.kubeconfig), "--node-name", "late",
             "--runtime", "simulated", "--register-node", "false")  # fmt: skip
    with kubelet(tmp_path / "late", *flags):
        assert kubectl.get("nodes")["items"] == []
        kubectl("create", "-f", "-", stdin=LATE)
        eventually(lambda: " Ready " in kubectl("get", "nodes"))


def test_without_any_api_the_node_says_what_it_runs(tmp_path):
    """[N19] [N22] and its health is there for a supervisor to ask"""
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "web.yaml").write_text(WEB.replace("IMAGE", "app:1"))
    flags = ("--node-name", "alone", "--runtime", "simulated", "--manifests", str(tmp_path / "m"),
             "--node-ip", "127.0.0.1", "--port", "0")  # fmt: skip
    with kubelet(tmp_path / "alone", *flags) as program:
        certificates = tmp_path / "alone" / "pki"
        context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        context.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
        port = _listening_port(program.process.pid)

        def asked(path):
            url = f"https://127.0.0.1:{port}{path}"
            with urllib.request.urlopen(url, context=context, timeout=60) as answer:
                return answer.read()

        assert asked("/healthz") == b"ok"
        eventually(lambda: b'"phase":"Running"' in asked("/pods"))
        assert b"web-alone" in asked("/pods")


def test_what_is_missing_is_said(tmp_path, capfd):
    from sampan.cmd.main import main

    assert main(["kubelet", "--data-dir", str(tmp_path / "x")]) == 1
    assert "or --join says where the API is" in capfd.readouterr().err


@pytest.mark.containerd
def test_a_real_node_without_an_api_runs_its_manifests(archive, tmp_path):
    """[N1] [N22] a container from a file, and nothing is left of it"""
    root = Path(tempfile.mkdtemp(prefix="sampan-alone-"))
    (root / "m").mkdir()
    data = root / "node"
    flags = ("--node-name", "alone", "--manifests", str(root / "m"), "--stop-pods")
    helper = SampanProcess(root)
    helper.data_dir = data
    try:
        with kubelet(data, *flags):
            helper.run("image", "import", str(archive))
            (root / "m" / "web.yaml").write_text(WEB.replace("IMAGE", "localhost/test/busybox:1"))
            logs = data / "logs" / "pods"
            eventually(lambda: list(logs.glob("default_web-alone_*/main/0.log")))
    finally:
        helper.run("reset", "--yes")
    assert leftovers(data) == {}
    shutil.rmtree(root)


def _listening_port(pid):
    """Of the process: the inode of its listening socket, looked up in the kernel's table."""
    inodes = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        target = path.readlink().name if path.is_symlink() else ""
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[9] in inodes and words[3] == "0A":
            return int(words[1].split(":")[1], 16)
    raise AssertionError("it does not listen")


def echo(kubectl, pod, word):
    """What a command in the pod says; nothing while the node is not where the API looks for it."""
    try:
        return kubectl("exec", pod, "--", "echo", word).strip()
    except KubectlFailure:
        return ""


@pytest.mark.containerd
def test_a_real_node_of_its_own_runs_pods_of_a_cluster(own_cluster, archive):
    """[N17] [N19] [N21] logs and exec go through its certificate; its restart touches nothing"""
    own_cluster.up("--runtime", "none")
    kubectl = own_cluster.kubectl
    root = Path(tempfile.mkdtemp(prefix="sampan-two-"))
    data = root / "two"
    helper = SampanProcess(root)
    helper.data_dir = data
    flags = ("--join", str(own_cluster.data_dir), "--node-name", "two")
    try:
        with kubelet(data, *flags):
            helper.run("image", "import", str(archive))
            eventually(lambda: " Ready " in kubectl("get", "nodes"))
            kubectl("run", "web", "--image=localhost/test/busybox:1", "--", "sh", "-c",
                    "echo hello; sleep 1000")  # fmt: skip
            kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=50s")
            before = kubectl.get("pod", "web")["status"]["containerStatuses"]
            eventually(lambda: "hello" in kubectl("logs", "web"))
            assert kubectl("exec", "web", "--", "echo", "inside").strip() == "inside"
        with kubelet(data, *flags, "--stop-pods"):
            # It is Ready from before; where it listens now it says with its first report.
            eventually(lambda: echo(kubectl, "web", "still") == "still", seconds=60)
            assert kubectl.get("pod", "web")["status"]["containerStatuses"] == before
            kubectl("delete", "pod", "web", "--grace-period=1")
    finally:
        helper.run("reset", "--yes")
    assert leftovers(data) == {}
    shutil.rmtree(root)


TOKEN = """
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-abcdef, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData:
  token-id: abcdef
  token-secret: 0123456789abcdef
  usage-bootstrap-authentication: "true"
  auth-extra-groups: system:bootstrappers:new
"""
GRANTED = {  # as kubeadm grants it: who asks, whose request is approved, who renews
    "join": ("system:node-bootstrapper", "system:bootstrappers"),
    "approve": (
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        "system:bootstrappers",
    ),
    "renew": (
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        "system:nodes",
    ),
}


def bootstrap_kubeconfig(cluster, directory):
    """With a token that lets a node join, and nothing else."""
    cluster.kubectl("apply", "-f", "-", stdin=TOKEN)
    for name, (role, group) in GRANTED.items():
        to = (f"--clusterrole={role}", f"--group={group}")
        cluster.kubectl("create", "clusterrolebinding", name, *to)
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "abcdef.0123456789abcdef"}
    path = directory / "bootstrap"
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)
    return path


def test_a_node_joins_with_a_bootstrap_token(own_cluster, tmp_path):
    """[A1] the token gets it a certificate of its own, and nothing else"""
    own_cluster.up("--runtime", "none")
    kubectl = own_cluster.kubectl
    first = bootstrap_kubeconfig(own_cluster, tmp_path)
    flags = ("--bootstrap-kubeconfig", str(first), "--node-name", "three", "--runtime", "simulated")
    with kubelet(tmp_path / "three", *flags):
        eventually(lambda: " Ready " in kubectl("get", "nodes"))
        (request,) = client_requests(kubectl)
        assert request["spec"]["username"] == "system:bootstrap:abcdef"
        assert request["status"]["conditions"][0]["type"] == "Approved"
    own = tmp_path / "three" / "pki"
    assert oct((own / "kubelet-client.key").stat().st_mode)[-3:] == "600"
    kubectl("delete", "secret", "-n", "kube-system", "bootstrap-token-abcdef")
    with kubelet(tmp_path / "three", *flags):  # again, without a token that is good for anything
        eventually(lambda: " Ready " in kubectl("get", "nodes"))
    assert len(client_requests(kubectl)) == 1


def client_requests(kubectl):
    """Who the node is; a request for the certificate of its own server may stand beside."""
    found = kubectl.get("csr")["items"]
    signer = "kubernetes.io/kube-apiserver-client-kubelet"
    return [one for one in found if one["spec"]["signerName"] == signer]


CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  containers:
  - name: main
    image: localhost/test/busybox:1
    command: [sh, -c, "echo kept > /data/file && cat /data/file"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: disk}}]
"""


@pytest.mark.containerd
@pytest.mark.parametrize("way", ["its directory", "a token"])
def test_claims_of_the_default_class_are_provisioned_on_a_joined_node(
    own_cluster, archive, tmp_path, way
):
    own_cluster.up("--runtime", "none")
    kubectl = own_cluster.kubectl
    root = Path(tempfile.mkdtemp(prefix="sampan-two-"))
    helper = SampanProcess(root)
    helper.data_dir = data = root / "two"
    if way == "a token":
        joins = ("--bootstrap-kubeconfig", str(bootstrap_kubeconfig(own_cluster, tmp_path)))
    else:
        joins = ("--join", str(own_cluster.data_dir))
    flags = (*joins, "--node-name", "two", "--stop-pods")
    try:
        with kubelet(data, *flags):
            helper.run("image", "import", str(archive))
            eventually(lambda: " Ready " in kubectl("get", "nodes"), seconds=60)
            kubectl.apply(CLAIM)
            kubectl.wait_phase("writer", "Succeeded")
            assert kubectl("logs", "writer") == "kept\n"
            kubectl("delete", "pod/writer", "pvc/disk")
            eventually(lambda: not kubectl.get("pv")["items"], seconds=60)
            assert list((data / "volumes").iterdir()) == []
    finally:
        helper.run("reset", "--yes")
    assert leftovers(data) == {}
    shutil.rmtree(root)
