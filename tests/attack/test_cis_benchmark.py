"""What docs/security.md answers to the CIS Benchmark, asked of a running cluster.

One test for each item that a running cluster can show; flags that are off unless somebody gives
them, and files, are asked about elsewhere (tests/attack/test_own_files.py).
"""

import contextlib
import http.client
import json
import os
import re
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sampan.client import kubeconfig
from sampan.core import tls
from tests.support.parts.native_runtime import why_not
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
# Ways in which TLS was done once: no forward secrecy, SHA-1, ciphers of the last century.
WEAK = ("AES128-GCM-SHA256", "AES256-SHA", "ECDHE-RSA-AES128-SHA", "DES-CBC3-SHA", "CAMELLIA",
        "aNULL", "eNULL", "PSK", "DHE-RSA-AES128-SHA")  # fmt: skip
READ_ONLY_PORT = 10255


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """With a real node where there can be one."""
    real = os.geteuid() == 0 and not why_not()
    flags = ("native",) if real else ("simulated", "--nodes", "1")
    process = SampanProcess(tmp_path_factory.mktemp("cis"), "--runtime", *flags)
    process.up()
    eventually(lambda: process.kubectl.get("nodes")["items"])
    yield process
    process.stop()
    process.reset()


class Asker:
    def __init__(self, cluster):
        self.connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
        where = urlsplit(self.connection.server)
        self.address = (where.hostname, where.port)

    def status(self, path, *, admin=False, address=None, headers=None, method="GET"):
        pair = self.connection.pair if admin else None
        context = tls.client_context(ca_data=self.connection.ca, pair_data=pair)
        server = http.client.HTTPSConnection(
            *(address or self.address), context=context, timeout=30
        )
        with contextlib.closing(server):
            server.request(method, path, headers=headers or {})
            return server.getresponse().status

    def kubelet(self, cluster):
        [node] = cluster.kubectl.get("nodes")["items"]
        port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        inside = [each for each in node["status"]["addresses"] if each["type"] == "InternalIP"]
        return (inside[0]["address"], port) if port else None


@pytest.fixture(scope="module")
def asker(cluster):
    return Asker(cluster)


@pytest.fixture(scope="module")
def kubelet(cluster, asker):
    found = asker.kubelet(cluster)
    if found is None or os.geteuid() != 0:
        pytest.skip("its nodes are simulated")
    return found


@pytest.mark.parametrize("path", ["/api/v1/secrets", "/apis", "/metrics", "/logs", "/openapi/v2"])
def test_1_2_1_who_is_nobody_is_refused(asker, path):
    assert asker.status(path) == 401


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_1_2_1_but_for_health_and_version(asker, path):
    assert asker.status(path) == 200


@pytest.mark.parametrize("token", ["Bearer admin", "Basic YWRtaW46YWRtaW4=", "Bearer "])
def test_1_2_2_no_static_tokens_or_passwords(asker, token):
    assert asker.status("/api/v1/namespaces", headers={"authorization": token}) == 401


def test_1_2_6_not_everything_is_allowed(cluster):
    may = cluster.kubectl("auth", "can-i", "--list", "--as", "nobody-at-all")
    assert "secrets" not in may
    assert "*.*" not in may


def test_1_2_12_to_14_service_accounts_namespaces_and_nodes_are_checked(cluster):
    refused = cluster.kubectl.fails(
        "create", "-f", "-",
        stdin=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
                "serviceAccountName": "none", "containers": [{"name": "c", "image": "i"}]}}),
    )  # fmt: skip
    assert "serviceaccount" in refused
    assert "not found" in cluster.kubectl.fails("create", "configmap", "c", "-n", "nowhere")
    refused = cluster.kubectl.fails(
        "label", "node", "--all", "node-restriction.kubernetes.io/a=b",
        "--as", "system:node:other", "--as-group", "system:nodes",
    )  # fmt: skip
    assert "orbidden" in refused


@pytest.mark.parametrize("path", ["/debug/pprof/", "/debug/pprof/profile", "/debug/flags/v"])
def test_1_2_15_there_is_no_profiling(asker, path):
    assert asker.status(path, admin=True) == 404


def handshake(address, version=None, ciphers=""):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if version is not None:
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = version
    if ciphers:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    with contextlib.suppress(ssl.SSLError):  # what this machine's library does not know either
        context.set_ciphers(f"{ciphers or 'ALL'}:@SECLEVEL=0")
        with (
            socket.create_connection(address, timeout=30) as plain,
            context.wrap_socket(plain, server_hostname="a") as made,
        ):
            return made.version()
    return None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_1_2_23_and_1_2_29_tls_is_new_and_its_ciphers_are_strong(asker):
    assert handshake(asker.address) == "TLSv1.3"
    assert handshake(asker.address, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
    for old in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        assert handshake(asker.address, old) is None
    assert [weak for weak in WEAK if handshake(asker.address, ciphers=weak)] == []


def test_1_3_5_namespaces_have_the_authority(cluster):
    root = cluster.kubectl.get("configmap", "kube-root-ca.crt", "-n", "kube-public")
    assert "BEGIN CERTIFICATE" in root["data"]["ca.crt"]


@pytest.mark.parametrize(
    "path", ["/pods", "/metrics", "/configz", "/exec/a/b/c", "/logs/", "/run/a"]
)
def test_4_2_1_to_4_2_3_the_kubelet_asks_who_it_is(asker, kubelet, path):
    assert asker.status(path, address=kubelet) == 401
    told = {"authorization": "Bearer a.b.c"}
    assert asker.status(path, address=kubelet, headers=told) == 401


def test_4_2_4_there_is_no_read_only_port(kubelet):
    with pytest.raises(OSError), socket.create_connection((kubelet[0], READ_ONLY_PORT), timeout=5):  # noqa: PT011
        pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_4_2_9_and_4_2_12_the_kubelets_certificate_is_the_clusters_and_its_ciphers_strong(
    asker, kubelet
):
    assert asker.status("/healthz", address=kubelet) in (200, 401)  # its name was checked
    assert [weak for weak in WEAK if handshake(kubelet, ciphers=weak)] == []
    assert handshake(kubelet, ssl.TLSVersion.TLSv1_1) is None


def test_5_2_namespaces_choose_their_level(cluster):
    cluster.kubectl("create", "namespace", "cis")
    label = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", "cis", label)
    eventually(lambda: cluster.kubectl.exists("serviceaccount", "default", "-n", "cis"))
    refused = cluster.kubectl.fails("run", "p", "--image=i", "--privileged", "-n", "cis")
    assert "violates PodSecurity" in refused


def test_every_section_of_control_plane_and_node_has_its_answer():
    """Of the numbers that kube-bench asks about, each is in the table once, alone or in a range."""
    wanted = {"1.1": 21, "1.2": 29, "1.3": 7, "1.4": 2, "2": 7, "4.1": 10, "4.2": 14, "4.3": 1}
    found: dict[str, set[int]] = {}
    for row in re.findall(r"^\| (\d[^|]*?) [a-zA-Z]", DOCUMENT.read_text(), re.MULTILINE):
        for part in row.replace(",", " ").split():
            first, _, last = part.partition("–")
            if not re.fullmatch(r"[\d.]+", first):
                continue
            section, _, number = first.rpartition(".")
            until = int(last.rpartition(".")[2]) if last else int(number)
            found.setdefault(section, set()).update(range(int(number), until + 1))
    for section, count in wanted.items():
        assert found[section] >= set(range(1, count + 1)), section
