"""The test kit, as its users have it: clusters in processes of their own, reached over HTTPS."""

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
import unittest
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import entry_points
from pathlib import Path

import kubernetes.client
import kubernetes.watch
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sampan.api.errors import ApiError, NotFound, Unauthorized
from sampan.client.blocking import BlockingClient
from sampan.client.kubeconfig import Connection, load
from sampan.cmd.snapshot.snapshot_file import Snapshot, write
from sampan.testing import chaos, cluster
from sampan.testing.kit.chaos import Chaos
from sampan.testing.kit.expectations import NotAsExpected
from sampan.testing.kit.launcher import ClusterGone, Refused, launcher
from sampan.testing.kit.spec import CannotStart
from tests.support.parts.kit_remains import remains
from tests.support.parts.sampan_process import environment
from tests.support.worlds.repeated_story import digest, story

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations:
        simulated.sampan.dev/log: hello from web
        simulated.sampan.dev/exec-output: "played\\n"
        simulated.sampan.dev/exec-exit-code: "3"
        simulated.sampan.dev/http.8080: "418 short and stout"
        simulated.sampan.dev/tcp.2000: "220 hello"
    spec: {containers: [{name: c, image: nginx}]}
"""
ODD_NODES = """
apiVersion: simulated.sampan.dev/v1
kind: Nodes
types: [{name: node, count: 2, capacity: {cpu: 7}}]
"""
FOREIGN_NODE = """
apiVersion: v1
kind: Node
metadata: {name: foreign}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: foreign, namespace: kube-node-lease}
spec: {holderIdentity: foreign, leaseDurationSeconds: 40, renewTime: "2026-01-01T00:00:00.000000Z"}
"""
SAMPAN = (sys.executable, "-m", "sampan")
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_cluster_has_controllers_a_scheduler_and_nodes():
    with cluster(nodes=2) as c:
        assert c.nodes.names() == ["node-0", "node-1"]
        c.apply(WEB)
        c.assert_ready("deploy/web")
        c.assert_count("pods", 2, labels="app=web")
        [first, _] = c.pods.names("app=web")
        assert c.pods.log(first) == "hello from web\n"
        done = subprocess.run(
            [*SAMPAN, "--kubeconfig", c.kubeconfig, "exec", first, "--", "x"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (3, "played\n")
        forward_to_ports(c.kubeconfig, first)
        assert "bind (node-" in c.trace(first)
        c.assert_event("Scheduled", f"pod/{first}", containing="Successfully assigned")
        c.delete("deploy/web")
        c.assert_gone(f"pod/{first}")
        c.assert_count("pods", 0)
        with pytest.raises(NotFound):
            c.get("deploy/web")


def forward_to_ports(kubeconfig, pod):
    """Two that are scripted, and one that nobody listens on."""
    command = [*SAMPAN, "--kubeconfig", kubeconfig, "port-forward", pod, ":8080", ":2000", ":9"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forwarding:
        try:
            told = (forwarding.stdout.readline() for _ in range(6))  # each for IPv4 and IPv6
            listening = [line for line in told if "127.0.0.1" in line]
            ports = {line.split()[-1]: line.split()[2].rpartition(":")[2] for line in listening}
            for _ in range(2):  # each connection has its own answer
                request = b"POST /brew HTTP/1.1\r\nHost: p\r\nContent-Length: 3\r\n\r\ntea"
                answer = exchanged(ports["8080"], request)
                assert answer.startswith(b"HTTP/1.1 418 ")
                assert answer.endswith(b"\r\n\r\nshort and stout")
            assert exchanged(ports["2000"], b"") == b"220 hello"
            assert exchanged(ports["9"], b"") == b""
        finally:
            forwarding.terminate()


def exchanged(port, said):
    """All that is answered until the other side hangs up."""
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as connection:
        connection.sendall(said)
        return b"".join(iter(lambda: connection.recv(4096), b""))


def test_clusters_hear_nothing_of_each_other_and_leave_nothing():
    with cluster() as one, cluster() as other:
        one.apply(POD)
        one.assert_ready("pod/p")
        assert other.find("pod/p") is None
        other.apply(POD)
        assert one.get("pod/p")["metadata"]["uid"] != other.get("pod/p")["metadata"]["uid"]
        pids, directories = [one.pid, other.pid], [one.directory, other.directory]
    assert [path for path in directories if path.exists()] == []
    eventually(lambda: not any(map(is_running, pids)))
    with pytest.raises(ClusterGone):
        one.clock.now()


def test_many_clusters_leave_no_thread_descriptor_file_or_process():
    """`make bench-testkit` asks the same of a thousand."""
    with cluster() as c:
        c.get("cm/kube-root-ca.crt")
    eventually(lambda: not is_running(c.pid))
    before = remains()
    for _ in range(30):
        with cluster() as c:
            c.get("cm/kube-root-ca.crt")
    eventually(lambda: remains() == before)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_pod_that_fails_is_restarted():
    with cluster() as c:
        c.apply(POD)
        c.assert_ready("pod/p")
        c.pods.fail("p", exit_code=137, reason="OOMKilled")
        pod = c.wait_for("pod/p", lambda pod: restarts(pod) == 1)
        ended = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
        with pytest.raises(Refused, match="no running container nix"):
            c.pods.fail("p", container="nix")


def restarts(pod) -> int:
    return sum(item["restartCount"] for item in pod["status"].get("containerStatuses", ()))


def test_an_ingress_has_an_address_where_there_is_a_controller():
    manifest = """
    apiVersion: networking.k8s.io/v1
    kind: Ingress
    metadata: {name: shop}
    spec: {ingressClassName: sampan, defaultBackend: {service: {name: shop, port: {number: 80}}}}
    """
    with cluster(nodes=0, ingress=True) as c:
        c.apply(textwrap.dedent(manifest))
        found = c.wait_for("ingress/shop", addresses, timeout=60.0)
        assert addresses(found) == [{"hostname": "localhost"}]


def addresses(ingress) -> list[dict[str, str]]:
    balancer = ingress["status"].get("loadBalancer") or {}
    return balancer.get("ingress") or []


def test_virtual_time_moves_when_it_is_told_to():
    with cluster(nodes=2, clock="virtual") as c:
        began = c.clock.now()
        c.apply(WEB)
        c.assert_ready("deploy/web")
        c.nodes.kill("node-0")
        c.wait_for("node/node-0", "Ready=Unknown", timeout="2m")
        assert 40 <= c.clock.now() - began <= 120
        c.clock.advance("10m")
        nodes = {pod["spec"]["nodeName"] for pod in c.list("pods") if not leaving(pod)}
        assert nodes == {"node-1"}


def test_a_seed_repeats_its_history():
    """With failures and faults; in another process, behind another story, in another order of
    sets."""
    first = story(1)
    assert story(1) == first
    program = """
from tests.support.worlds.repeated_story import digest, story
story(2, "1s")
print(digest(story(1)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment(), "PYTHONHASHSEED": "77"}, capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip
    assert done.stdout.strip() == digest(first), done.stderr


def leaving(pod) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def test_cron_jobs_run_when_their_time_has_come():
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "hourly"},
        "spec": {
            "schedule": "0 * * * *",
            "successfulJobsHistoryLimit": 100,
            "jobTemplate": {
                "spec": {
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{"name": "c", "image": "i"}],
                        }
                    }
                }
            },
        },
    }
    with cluster(clock="virtual") as c:
        c.apply(cron)
        c.clock.advance("5h")
        c.settle()
        jobs = c.list("jobs")
        assert len(jobs) == 5
        c.clock.advance("30s")
        assert [job["status"].get("succeeded") for job in c.list("jobs")] == [1] * 5


def test_a_node_is_missed_when_its_grace_is_over_and_only_then():
    with cluster(nodes=1, clock="virtual") as c:
        c.apply(FOREIGN_NODE)
        c.clock.advance("1d")
        renewed = c.get("lease/node-0", namespace="kube-node-lease")["spec"]["renewTime"]
        assert datetime.fromisoformat(renewed).timestamp() == c.clock.now()
        assert ready_of(c, "node-0") == "True"
        assert ready_of(c, "foreign") == "Unknown", "nobody of ours renews its lease"
        with watched_lease(c, "node-0") as renewals:
            assert next(renewals) == "00:00:00"
            c.clock.advance("2m")
            assert [next(renewals) for _ in range(3)] == ["00:00:36", "00:01:12", "00:01:48"]
        c.nodes.cut("node-0")
        c.clock.advance("49s")
        assert ready_of(c, "node-0") == "True"
        c.clock.advance("1s")
        assert ready_of(c, "node-0") == "Unknown"
        renewed = c.get("lease/node-0", namespace="kube-node-lease")["spec"]["renewTime"]
        assert renewed.startswith("2026-01-02T00:02:00."), "a node that is cut off renews nothing"
        c.nodes.mend("node-0")
        c.wait_for("node/node-0", "Ready", timeout="2m")
        with pytest.raises(Refused, match="there is no node nix"):
            c.nodes.cut("nix")


@contextmanager
def watched_lease(c, node):
    """When it was renewed, as a client sees it."""
    with c.clients.kubernetes() as connection:
        watch = kubernetes.watch.Watch()
        events = watch.stream(
            kubernetes.client.CoordinationV1Api(connection).list_namespaced_lease,
            "kube-node-lease",
            field_selector=f"metadata.name={node}",
            _request_timeout=60,
        )
        yield (f"{event['object'].spec.renew_time:%H:%M:%S}" for event in events)
        watch.stop()
        events.close()


def ready_of(c, node) -> str:
    conditions = c.get(f"node/{node}")["status"]["conditions"]
    return next(item["status"] for item in conditions if item["type"] == "Ready")


def test_certificates_live_by_the_machines_time_and_tokens_by_the_clusters():
    """What TLS judges asks the machine, at both ends; what the API server judges, its own clock."""
    with cluster(nodes=0, clock="virtual") as c:
        key, request = certificate_request("jane")
        csr = {
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": "jane"},
            "spec": {
                "request": b64encode(request).decode(), "usages": ["client auth"],
                "signerName": "kubernetes.io/kube-apiserver-client", "expirationSeconds": 3600,
            },
        }  # fmt: skip
        c.create(csr)
        approved = {"type": "Approved", "status": "True", "reason": "R", "message": "m"}
        path = "/apis/certificates.k8s.io/v1/certificatesigningrequests/jane/approval"
        shown = c.get("csr/jane")
        c.api.json("PUT", path, body={**shown, "status": {"conditions": [approved]}})
        c.settle()
        certificate = b64decode(c.get("csr/jane")["status"]["certificate"])
        asked = {"spec": {"expirationSeconds": 3600}}
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        answer = c.api.json("POST", path, body=asked)
        assert answer["status"]["expirationTimestamp"] == "2026-01-01T01:00:00Z"
        c.create(
            {
                "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
                "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
                "stringData": {
                    "token-id": "abcdef", "token-secret": "0123456789abcdef",
                    "usage-bootstrap-authentication": "true", "expiration": "2026-01-02T00:00:00Z",
                },
            }
        )  # fmt: skip
        jane = {"certificate": certificate, "key": key}
        tokens = [{"token": answer["status"]["token"]}, {"token": "abcdef.0123456789abcdef"}]
        names = ["system:serviceaccount:default:default", "system:bootstrap:abcdef"]
        assert [who_is(c, **item) for item in (jane, *tokens)] == ["jane", *names]
        c.clock.advance("2h")
        assert [who_is(c, **item) for item in (jane, *tokens)] == ["jane", "", names[1]]
        c.clock.advance("30d")
        assert [who_is(c, **item) for item in (jane, *tokens)] == ["jane", "", ""]


def certificate_request(name) -> tuple[bytes, bytes]:
    """A key, and the request for a certificate of it; PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    pem = serialization.Encoding.PEM
    written = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return written, request.sign(key, hashes.SHA256()).public_bytes(pem)


def who_is(c, **identity) -> str:
    """As whom the API server knows who shows this; empty: as nobody."""
    ca = load(str(c.kubeconfig), {}, "").connection().ca
    client = BlockingClient(Connection(c.url, ca=ca, **identity), timeout_seconds=60.0)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    try:
        return client.json("POST", path, body=review)["status"]["userInfo"]["username"]
    except Unauthorized:
        return ""
    finally:
        client.close()


def test_a_drained_node_is_empty():
    with cluster(nodes=2) as c:
        c.apply(WEB)
        c.assert_ready("deploy/web")
        c.nodes.drain("node-0")
        assert c.get("node/node-0")["spec"]["unschedulable"] is True
        c.assert_ready("deploy/web")
        assert {pod["spec"]["nodeName"] for pod in c.list("pods")} == {"node-1"}


def test_a_fork_goes_on_from_where_the_other_is():
    with cluster() as c:
        c.apply(WEB)
        c.assert_ready("deploy/web")
        [first, _] = c.pods.names()
        assert c.pods.log(first) == "hello from web\n"
        with c.fork() as other:
            other.delete("deploy/web")
            other.assert_count("pods", 0)
            c.apply(POD)
            c.assert_ready("pod/p")
            assert other.find("pod/p") is None
        c.assert_count("pods", 3)
        with c.fork() as other:
            assert other.pods.log(first) == "hello from web\n"


def test_a_cluster_begins_with_what_another_one_saved(tmp_path):
    (tmp_path / "nodes.yaml").write_text(ODD_NODES)
    with cluster(nodes_file=str(tmp_path / "nodes.yaml")) as c:
        c.apply(WEB)
        c.assert_ready("deploy/web")
        saved = c.save(tmp_path / "state")
        assert c.diff(saved) == []
        names, uid = c.pods.names(), c.get("deploy/web")["metadata"]["uid"]
        c.apply(POD)
        assert c.diff(saved)[0] == "+ Pod default/p"
    with cluster(snapshot=saved, clock="virtual") as c:
        assert c.nodes.names() == ["node-0", "node-1"]
        assert c.get("node/node-1")["status"]["capacity"]["cpu"] == "7"
        c.assert_ready("deploy/web")
        assert (c.pods.names(), c.get("deploy/web")["metadata"]["uid"]) == (names, uid)
        c.delete(f"pod/{names[0]}")
        c.assert_gone(f"pod/{names[0]}")
        c.assert_ready("deploy/web")


STAGE = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: done}
spec:
  resourceRef: {apiGroup: v1, kind: ConfigMap}
  selector: {matchLabels: {work: "yes"}}
  delay: {durationMilliseconds: 3600000}
  next:
    patches:
    - template: "{metadata: {labels: {work: done}}, data: {result: '{{ .data.n }}'}}"
"""


def test_objects_move_on_by_stages_in_virtual_time(tmp_path):
    (tmp_path / "stages.yaml").write_text(STAGE)
    with cluster(nodes=0, clock="virtual", stages=str(tmp_path / "stages.yaml")) as c:
        meta = {"name": "m", "labels": {"work": "yes"}}
        c.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"n": "7"}})
        c.clock.advance(3500)
        assert c.get("configmap/m")["data"] == {"n": "7"}
        c.clock.advance(200)
        assert c.get("configmap/m")["data"] == {"n": "7", "result": "7"}
    (tmp_path / "stages.yaml").write_text(STAGE.replace("3600000", "60000"))
    with cluster(nodes=0, clock="virtual", stages=str(tmp_path / "stages.yaml")) as c:
        c.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"n": "8"}})
        c.clock.advance(61)
        assert c.get("configmap/m")["data"] == {"n": "8", "result": "8"}
    (tmp_path / "mistaken.yaml").write_text(STAGE.replace("delay", "pause"))
    with pytest.raises(CannotStart, match=r"stages: done: spec\.pause: unknown field"):
        cluster(nodes=0, clock="virtual", stages=str(tmp_path / "mistaken.yaml"))


def test_what_is_not_as_expected_is_said_with_its_reason():
    with cluster(nodes=0) as c:
        c.apply(POD)
        c.assert_event("FailedScheduling", "pod/p", timeout=120)
        c.wait_for("pod/p", "PodScheduled=False", timeout=120)
        with pytest.raises(NotAsExpected) as failure:
            c.assert_ready("pod/p", timeout=1)
        text = str(failure.value)
        assert "pod/p in default: expected within 1: Ready is True" in text
        assert "PodScheduled: False (Unschedulable: no nodes available" in text
        assert "FailedScheduling" in text
        with pytest.raises(NotAsExpected, match=r"expected 2 pods in default; .* has 1: p"):
            c.assert_count("pods", 2, timeout=0.1)
        with pytest.raises(NotAsExpected, match=r"an event Nix .*\n.*FailedScheduling"):
            c.assert_event("Nix", timeout=0.1)
        assert "why pod/p" in c.report()


def test_a_kind_that_was_defined_a_moment_ago_is_known():
    names = {"kind": "Boat", "plural": "boats", "singular": "boat", "shortNames": ["bt"]}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.sampan.example"},
        "spec": {"group": "sampan.example", "scope": "Namespaced", "names": names,
                 "versions": [version]},
    }  # fmt: skip
    boat = {"apiVersion": "sampan.example/v1", "kind": "Boat", "metadata": {"name": "b"}}
    with cluster() as c:
        c.apply([definition, boat])
        assert c.get("bt/b")["kind"] == "Boat"
        assert "boat/b" in c.report()


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"controllers": "*,-nix"}, '"-nix" is not in the list of known controllers'),
        ({"nodes": -1}, "a number from 0"),
        ({"snapshot": "/nix/nothing"}, "there is no snapshot"),
        ({"boats": 3}, "a cluster has no 'boats'"),
        ({"webhooks": 3}, "webhooks= is {'pods': function"),
        ({"version": "1.20"}, "there is no Kubernetes 1.20 here"),
        ({"feature_gates": "Nix=true"}, "unrecognized feature gate: Nix"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_in_one_line(chosen, says):
    with pytest.raises(CannotStart) as refused:
        cluster(**chosen)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_snapshot_that_cannot_be_restored_is_refused_in_one_line(tmp_path):
    boat = {"apiVersion": "x.example/v1", "kind": "Boat", "metadata": {"name": "b"}}
    write(tmp_path / "s", Snapshot([boat]))
    with pytest.raises(CannotStart, match="nobody defines the kind Boat"):
        cluster(snapshot=tmp_path / "s")


def test_clusters_of_several_versions_side_by_side():
    """[V1] [V2] each with its own number, APIs, fields and words"""
    group = "/apis/admissionregistration.k8s.io/v1"
    quiet = {"name": "c", "image": "x", "lifecycle": {"stopSignal": "SIGUSR1"}}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}
    gates = {"ContainerStopSignals": True}
    with cluster(version="1.34") as old, cluster(version="1.37", feature_gates=gates) as new:
        found = {}
        for each in (old, new):
            number = each.api.json("GET", "/version")
            served = {row["name"] for row in each.api.json("GET", group)["resources"]}
            node = each.get("node/node-0")["status"]["nodeInfo"]["kubeletVersion"]
            each.apply({**pod, "spec": {"os": {"name": "linux"}, "containers": [quiet]}})
            each.wait_for("pod/p", "Ready")
            [container] = each.get("pod/p")["spec"]["containers"]
            found[f"{number['major']}.{number['minor']}"] = (
                node.partition("+")[0],
                "mutatingadmissionpolicies" in served,
                "lifecycle" in container,
            )
    assert found == {"1.34": ("v1.34.0", False, False), "1.37": ("v1.37.0", True, True)}


def test_a_run_has_a_version_and_a_test_another_one(tmp_path):
    """[V1] by a variable, by the marker, as a parameter"""
    source = """
        import pytest

        def number(cluster):
            return cluster.api.json("GET", "/version")["minor"]

        def test_by_the_variable(sampan):
            assert number(sampan) == "36"

        @pytest.mark.sampan(version="1.37")
        def test_by_the_marker(sampan):
            assert number(sampan) == "37"

        @pytest.mark.parametrize("sampan", ["1.34", "1.35"], indirect=True)
        def test_as_a_parameter(sampan):
            assert number(sampan) in ("34", "35")
    """
    result = run_pytest(tmp_path, source, SAMPAN_KUBERNETES_VERSION="1.36")
    assert "4 passed" in result.stdout, result.stdout


def test_a_store_on_disk():
    with cluster(store="sqlite") as c:
        c.apply(WEB)
        c.assert_ready("deploy/web")
        assert (c.directory / "store.db").exists()


def test_without_some_controllers():
    with cluster(controllers="*,-deployment") as c:
        c.apply(WEB)
        c.settle()
        c.assert_count("replicasets", 0, timeout=0.1)


@pytest.mark.usefixtures("leaves_connections")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # theirs: not all of them can be closed
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_clients_of_other_libraries():
    with cluster() as c:
        c.apply(POD)
        c.assert_ready("pod/p")
        from kubernetes import client
        from lightkube.resources.core_v1 import Pod

        with c.clients.kubernetes() as api:
            [pod] = client.CoreV1Api(api).list_namespaced_pod("default").items
            assert pod.metadata.name == "p"
        assert c.clients.lightkube().get(Pod, "p").metadata.name == "p"

        async def by_kr8s():
            api = await c.clients.kr8s_asyncio()
            return [pod.name async for pod in api.get("pods", namespace="default")]

        assert asyncio.run(by_kr8s()) == ["p"]
        with pytest.raises(ImportError, match="pip install pykube-ng"):
            c.clients.pykube()
        with pytest.raises(ImportError, match="pip install kubernetes-asyncio"):
            asyncio.run(c.clients.kubernetes_asyncio())


def count_up(c, times: int) -> list[int]:
    """A client without patience: the codes that it was answered; 0 where the answer broke off."""
    from kubernetes import client
    from urllib3.exceptions import HTTPError

    codes = []
    with c.clients.kubernetes() as api:
        core = client.CoreV1Api(api)
        for number in range(times):
            try:
                core.patch_namespaced_config_map("n", "default", {"data": {"n": str(number)}})
                codes.append(200)
            except client.ApiException as error:
                codes.append(error.status)
            except HTTPError:
                codes.append(0)
    return codes


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}}
BAD = {"rate": 0.5, "kinds": ["conflict", "throttled", "error", "lost"]}


@pytest.mark.usefixtures("leaves_connections")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_faults_come_by_seed_and_spare_the_test_itself():
    told = []
    for _ in range(2):
        with cluster() as c:
            c.apply(CONFIG)
            with c.faults(seed=3, **BAD):
                told.append(count_up(c, 60))
                assert c.get("cm/n")["metadata"]["name"] == "n"
                assert "conflict" in c.faults_told()
            assert count_up(c, 5) == [200] * 5
    assert told[0] == told[1]
    assert {0, 200, 409, 429, 500} == {*told[0]}


def test_a_watch_may_tell_everything_twice():
    with cluster() as c, c.faults(seed=1, rate=1.0, kinds=["duplicated"], resources=["configmaps"]):
        c.apply(CONFIG)
        from kubernetes.client import CoreV1Api
        from kubernetes.watch import Watch

        with c.clients.kubernetes() as client:
            watching = Watch().stream(
                CoreV1Api(client).list_namespaced_config_map, "default",
                field_selector="metadata.name=n", timeout_seconds=1,
            )  # fmt: skip
            events = [(event["type"], event["object"].metadata.name) for event in watching]
        assert events == [("ADDED", "n"), ("ADDED", "n")]


def no_secrets(request):
    if request["object"]["kind"] == "Secret":
        raise ValueError("no secrets here")


def labelled(request):
    changed = request["object"]
    changed["metadata"].setdefault("labels", {})["seen"] = request["operation"].lower()
    return changed


@pytest.fixture(scope="module")
def guarded():
    with cluster(webhooks={"configmaps": labelled, "secrets": no_secrets}) as c:
        yield c


def test_functions_of_the_test_are_webhooks(guarded):
    guarded.apply(CONFIG)
    assert guarded.get("cm/n")["metadata"]["labels"] == {"seen": "create"}
    guarded.patch("cm/n", {"data": {"a": "b"}})
    assert guarded.get("cm/n")["metadata"]["labels"] == {"seen": "update"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    with pytest.raises(ApiError, match=r"denied the request: ValueError: no secrets here"):
        guarded.apply(secret)


def test_a_webhook_may_hang():
    with (
        cluster(clock="virtual", webhooks={"configmaps": labelled}) as c,
        c.faults(seed=1, rate=1.0, kinds=["hanging"]),
    ):
        with pytest.raises(ApiError, match="context deadline exceeded"):
            ask_while_time_passes(c)
        assert "1 hanging" in c.faults_told()


def ask_while_time_passes(c):
    """The webhook has ten seconds: whoever waits for them moves the clock."""
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(
            c.api.json, "POST", "/api/v1/namespaces/default/configmaps", body=CONFIG
        )
        while not asked.done():
            c.clock.advance(1)
        return asked.result()


def test_a_failure_is_told_with_its_seed():
    with cluster() as c:
        with pytest.raises(AssertionError) as failure, c.faults(seed=7):
            c.wait_for("pod/nix", timeout=0.01)
        assert "seed=7" in failure.value.__notes__[0]
        with pytest.raises(Refused, match="kinds="):
            c.start_faults(kinds=["nix"])


OPERATOR = """
import time
from kubernetes import client, config

config.load_kube_config()
core = client.CoreV1Api()
while True:
    try:
        for item in core.list_namespaced_config_map("default", label_selector="wanted").items:
            if (item.data or {}).get("done") != "yes":
                done = {"data": {"done": "yes"}}
                core.patch_namespaced_config_map(item.metadata.name, "default", done)
    except Exception as error:
        print(type(error).__name__, flush=True)
    time.sleep(0.05)
"""


def operate(kubeconfig):
    exec(OPERATOR.replace("load_kube_config()", f"load_kube_config({kubeconfig!r})"), {})


def test_an_operator_in_chaos():
    wanted = [
        {**CONFIG, "metadata": {"name": f"n{number}", "labels": {"wanted": ""}}}
        for number in range(3)
    ]
    with cluster(nodes=2) as c:
        c.apply(wanted)

        def all_done():
            return all(
                item.get("data") == {"done": "yes"} for item in c.list("cm", labels="wanted")
            )

        how = Chaos(seconds=3, rate=0.3, peace_seconds=200)
        assert (
            chaos(c, [sys.executable, "-c", OPERATOR], {"all done": all_done}, seed=5, how=how) == 5
        )
        c.patch("cm/n1", {"data": None})
        chaos(c, operate, {"all done": all_done}, seed=7, how=how)
        lazy = ["sh", "-c", "echo asleep; exec sleep 1000"]
        c.apply(wanted[:1])
        c.patch("cm/n0", {"data": None})
        brief = Chaos(seconds=5, restarts=False, peace_seconds=0.5)
        with pytest.raises(NotAsExpected, match=r"all done\nseed=6(.|\n)*asleep"):
            chaos(c, lazy, {"all done": all_done}, seed=6, how=brief)
        with pytest.raises(NotAsExpected, match="it ended with 3"):
            chaos(c, ["sh", "-c", "exit 3"], {}, seed=6, how=brief)
        with pytest.raises(NotAsExpected, match=r"it ended with 1:(.|\n)*ZeroDivisionError"):
            chaos(c, lambda _kubeconfig: 1 / 0, {}, seed=6, how=brief)


class ATestCase(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(cluster())

    def test_with_unittest(self):
        self.cluster.apply(POD)
        self.cluster.assert_ready("pod/p")


def run_pytest(
    directory: Path, source: str, *flags: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(textwrap.dedent(source))
    installed = [entry.name for entry in entry_points(group="pytest11") if entry.name == "sampan"]
    plugin = [] if installed else ["-p", "sampan.testing.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", "-W", "error"]
    source_path = str(Path(__file__).parents[2] / "src")
    return subprocess.run(
        [*command, *flags, "test_it.py"],
        cwd=directory, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": source_path, **variables},
    )  # fmt: skip


def test_the_plugin_gives_each_test_its_cluster(tmp_path):
    done = run_pytest(
        tmp_path,
        """
        import asyncio
        import pytest

        POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
               "spec": {"containers": [{"name": "c", "image": "i"}]}}

        @pytest.mark.parametrize("number", range(4))
        def test_alone(sampan, number):
            assert sampan.find("pod/p") is None
            sampan.apply(POD)
            sampan.assert_ready("pod/p")

        @pytest.mark.sampan(nodes=3, clock="virtual")
        def test_marked(sampan):
            assert len(sampan.nodes.names()) == 3
            sampan.clock.advance("1m")

        @pytest.mark.sampan_faults(seed=1)
        def test_with_faults(sampan):
            sampan.apply(POD)
            sampan.assert_ready("pod/p")

        def test_together(sampan_session, request):
            sampan_session.apply(POD)
            sampan_session.assert_ready("pod/p")

        def test_together_again(sampan_session):
            sampan_session.assert_ready("pod/p")
        """,
        "-n",
        "2",
        "--dist=loadfile",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout


def test_the_plugin_reports_what_a_failed_test_left(tmp_path):
    done = run_pytest(
        tmp_path,
        """
        import pytest

        @pytest.mark.sampan(nodes=0)
        def test_fails(sampan):
            sampan.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                          "spec": {"containers": [{"name": "c", "image": "i"}]}})
            sampan.assert_event("FailedScheduling")
            assert 1 == 2

        @pytest.mark.sampan(nodes="many")
        def test_cannot_start(sampan):
            pass
        """,
        "--sampan-keep",
    )
    kept = next(line for line in done.stdout.splitlines() if line.startswith("kill "))
    pid = int(kept.split()[1])
    try:
        assert "cluster of the fixture sampan" in done.stdout
        assert "why pod/p:" in done.stdout
        assert "trace of pod/p:" in done.stdout
        assert "sampan: no cluster: nodes='many': a number from 0 to" in done.stdout
        assert "1 failed, 1 error" in done.stdout
        [line] = [line for line in done.stdout.splitlines() if line.startswith("export KUBECONFIG")]
        kubeconfig = line.partition("=")[2]
        command = [sys.executable, "-m", "sampan", "get", "pods", "--kubeconfig", kubeconfig]
        listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert "p " in listed.stdout
    finally:
        os.kill(pid, 9)
        subprocess.run(["rm", "-rf", Path(kubeconfig).parents[1]], check=True)


def test_the_plugin_costs_nothing_where_it_is_not_used(tmp_path):
    done = run_pytest(
        tmp_path,
        """
        import sys

        def test_nothing():
            assert [name for name in sys.modules if name.startswith("sampan.")] == [
                "sampan.testing", "sampan.testing.pytest_plugin"]
        """,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_processes_end_with_whoever_started_them(tmp_path):
    program = """
    import os, sys
    from sampan.testing import cluster
    from sampan.testing.kit.launcher import launcher
    c = cluster()
    print(c.pid, launcher().base, flush=True)
    os.kill(os.getpid(), 9)
    """
    source_path = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": source_path},
    )  # fmt: skip
    assert done.stdout, done.stderr
    pid, base = done.stdout.split()
    eventually(lambda: not is_running(int(pid)) and not Path(base).exists())


def eventually(question, seconds: float = 60.0) -> None:
    from sampan.testing.kit.pacing import ClusterClock

    clock = ClusterClock(launcher()._zygote, virtual=False)
    assert clock.wait_until(question, seconds)
