"""`sampan testserver`: the programs that envtest starts, started as envtest starts them."""

import contextlib
import datetime
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from sampan.api.errors import Forbidden, NotFound
from sampan.client.blocking import BlockingClient
from sampan.client.kubeconfig import Connection, load
from sampan.core.clock import SystemClock
from tests.support.parts.certificates import Authority
from tests.support.parts.processes import Program
from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def is_healthy(url: str) -> bool:
    context = ssl._create_unverified_context() if url.startswith("https") else None
    try:
        with urllib.request.urlopen(url, timeout=5, context=context) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def until(question, seconds: float = 60.0) -> None:
    latest = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < latest, "it never became so"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def assets(tmp_path_factory):
    directory = tmp_path_factory.mktemp("testserver") / "assets"
    command = [*sampan_command("testserver"), "--assets", str(directory)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"export KUBEBUILDER_ASSETS={directory}\n"
    return directory


@pytest.fixture
def certificates(tmp_path):
    """As envtest makes them: two authorities; the key for tokens is of a third one, whose
    certificate is what they are checked with."""
    directory = tmp_path / "certs"
    directory.mkdir()
    pair = Authority(directory, "serving-ca").issue("apiserver")
    shutil.copy(pair.cert_path, directory / "apiserver.crt")
    shutil.copy(pair.key_path, directory / "apiserver.key")
    key = rsa.generate_private_key(65537, 2048)
    (directory / "sa-signer.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "envtest-environment")])
    now = datetime.datetime.fromtimestamp(SystemClock().now(), datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=7))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (directory / "sa-signer.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return directory


def test_envtest_starts_uses_and_ends_it(assets, certificates, tmp_path):
    listed = subprocess.run(
        [assets / "kube-apiserver", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "--secure-port" in listed.stdout
    assert "--insecure-port" not in listed.stdout
    store = f"http://127.0.0.1:{free_port()}"
    etcd = [
        str(assets / "etcd"), f"--data-dir={tmp_path}", f"--listen-client-urls={store}",
        f"--advertise-client-urls={store}", "--listen-peer-urls=http://127.0.0.1:0",
    ]  # fmt: skip
    with started(etcd, tmp_path / "etcd.out"):
        until(lambda: is_healthy(f"{store}/health"))
        clients = Authority(certificates, "client-cert-auth-ca")
        more = [f"--etcd-servers={store}", "--watch-cache=false", "--v=4", ""]
        with served(assets, certificates, clients, more) as api_at:
            api = client_of(api_at, clients.issue("admin", "system:masters"))
            api.json("GET", "/api/v1/namespaces/default")  # it waits for this one before all else
            use_tokens(api)
            use_roles(api, client_of(api_at, clients.issue("somebody", "readers")))
            use(api)
            said = (certificates / "apiserver.out").read_text()
            for flag in ("--watch-cache=false", "--v=4"):
                assert f"{flag} has no effect here" in said


def test_with_nodes_deployments_become_ready_in_envtest(assets, certificates):
    """The API server alone: its objects are in memory, and no etcd is asked."""
    clients = Authority(certificates, "client-cert-auth-ca")
    with served(assets, certificates, clients, ["--nodes=2"]) as api_at:
        api = client_of(api_at, clients.issue("admin", "system:masters"))
        use_nodes(api)
        api.close()


@contextlib.contextmanager
def started(command, output):
    """What was started is ended, whatever happened to the others."""
    program = Program(command, output, environment())
    try:
        yield program
    except BaseException:
        program.kill()
        raise
    program.process.send_signal(signal.SIGTERM)
    try:
        assert program.process.wait(60) == 0
    finally:
        program.kill()


@contextlib.contextmanager
def served(assets, certificates, clients, more):
    """`kube-apiserver` as envtest starts it: its URL, and who signed its certificate."""
    port = free_port()
    command = [
        str(assets / "kube-apiserver"), "--allow-privileged=true", "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1", f"--cert-dir={certificates}",
        f"--client-ca-file={clients.ca_path}", "--disable-admission-plugins=ServiceAccount",
        f"--secure-port={port}",
        f"--service-account-issuer=https://127.0.0.1:{port}/",
        f"--service-account-key-file={certificates / 'sa-signer.crt'}",
        f"--service-account-signing-key-file={certificates / 'sa-signer.key'}",
        "--service-cluster-ip-range=10.0.0.0/24", "--feature-gates=WatchList=true", *more,
    ]  # fmt: skip
    with started(command, certificates / "apiserver.out") as server:
        server.wait_until(lambda: is_healthy(f"https://127.0.0.1:{port}/healthz"), 60)
        yield f"https://127.0.0.1:{port}", (certificates / "serving-ca.crt").read_bytes()


def client_of(api_at: tuple[str, bytes], pair) -> BlockingClient:
    url, ca = api_at
    certificate, key = pair.cert_path.read_bytes(), pair.key_path.read_bytes()
    return BlockingClient(Connection(url, ca=ca, certificate=certificate, key=key))


def use_tokens(api: BlockingClient) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    api.json("POST", accounts, body={"metadata": {"name": "robot"}})
    answer = api.json("POST", f"{accounts}/robot/token", body={"spec": {}})
    review = {"spec": {"token": answer["status"]["token"]}}
    found = api.json("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body=review)["status"]
    assert found["authenticated"], found
    assert found["user"]["username"] == "system:serviceaccount:default:robot"


def use_roles(api: BlockingClient, somebody: BlockingClient) -> None:
    """A user that was added has what its groups are given."""
    with pytest.raises(Forbidden):
        somebody.json("GET", "/api/v1/namespaces/default/configmaps")
    subject = {"kind": "Group", "name": "readers", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "readers"}, "subjects": [subject], "roleRef": role}
    api.json("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body=binding)

    def may_read() -> bool:
        try:
            somebody.json("GET", "/api/v1/namespaces/default/configmaps")
        except Forbidden:
            return False
        return True

    until(may_read)  # `view` is put together by a controller
    somebody.close()


def use(api: BlockingClient) -> None:
    """What envtest's users do, and what they miss there."""
    api.json("POST", "/api/v1/namespaces", body={"metadata": {"name": "shop"}})
    pods = "/api/v1/namespaces/shop/pods"
    configs = "/api/v1/namespaces/shop/configmaps"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    owner = api.json("POST", pods, body=pod)  # without a service account, as they ask for it
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner["metadata"]["uid"]}
    for name, owners in (("owned", [reference]), ("free", [])):
        meta = {"name": name, "ownerReferences": owners}
        api.json("POST", configs, body={"metadata": meta})
    api.json("DELETE", f"{pods}/p", {"gracePeriodSeconds": "0"})
    until(lambda: "owned" not in names(api, configs))
    assert "free" in names(api, configs)
    api.json("DELETE", "/api/v1/namespaces/shop")
    until(lambda: is_gone(api, "/api/v1/namespaces/shop"))
    api.close()


def use_nodes(api: BlockingClient) -> None:
    """A Deployment is rolled out, its pods have logs, and all goes with its namespace."""
    api.json("POST", "/api/v1/namespaces", body={"metadata": {"name": "web"}})
    script = {"simulated.sampan.dev/log": "hello"}
    labels, container = {"app": "web"}, {"name": "c", "image": "i"}
    template = {
        "metadata": {"labels": labels, "annotations": script}, "spec": {"containers": [container]},
    }  # fmt: skip
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    deployments = "/apis/apps/v1/namespaces/web/deployments"
    api.json("POST", deployments, body={"metadata": {"name": "web"}, "spec": spec})
    status = f"{deployments}/web/status"
    until(lambda: api.json("GET", status)["status"].get("availableReplicas") == 3)
    until(lambda: names(api, "/api/v1/nodes") == ["node-0", "node-1"])
    pod = names(api, "/api/v1/namespaces/web/pods")[0]
    assert api.ask("GET", f"/api/v1/namespaces/web/pods/{pod}/log", accept="*/*").body == b"hello\n"
    api.json("DELETE", "/api/v1/namespaces/web")
    until(lambda: is_gone(api, "/api/v1/namespaces/web"))


def names(api: BlockingClient, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in api.json("GET", path)["items"]]


def is_gone(api: BlockingClient, path: str) -> bool:
    try:
        api.json("GET", path)
    except NotFound:
        return True
    return False


def test_by_itself_it_writes_a_kubeconfig(tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    command = [*sampan_command("testserver"), "--nodes", "2", "--kubeconfig", str(kubeconfig)]
    with started(command, tmp_path / "out") as server:
        server.wait_until(lambda: "export KUBECONFIG" in (tmp_path / "out").read_text(), 60)
        api = BlockingClient(load(str(kubeconfig), {}, "").connection())
        use_nodes(api)
        api.close()
