"""An API server behind an APIService, as kubectl and other clients see it [A6]."""

import base64
import subprocess
from contextlib import ExitStack

import pytest
from kubernetes import client as kube
from kubernetes import config as kube_config
from kubernetes import watch as kube_watch

from sampan.cmd.cluster.machine import primary_address
from tests.support.parts.aggregated_server import GROUP, served_teas
from tests.support.parts.certificates import Authority
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]

REGISTRATION = """
apiVersion: v1
kind: Service
metadata: {{name: tea}}
spec: {{ports: [{{name: https, port: 443}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: tea, labels: {{kubernetes.io/service-name: tea}}}}
addressType: IPv4
endpoints: [{{addresses: ["{address}"]}}]
ports: [{{name: https, port: {port}}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1.tea.example.com}}
spec:
  group: tea.example.com
  version: v1
  groupPriorityMinimum: 2000
  versionPriority: 10
  caBundle: {bundle}
  service: {{namespace: default, name: tea}}
"""
TEA = """
apiVersion: tea.example.com/v1
kind: Tea
metadata: {{name: {name}, namespace: {namespace}}}
leaves: black
"""


class TeaCluster:
    """A control plane, and the server behind it, which can go and come back."""

    def __init__(self, root):
        self.address = primary_address()
        if self.address.startswith("127."):
            pytest.skip("this machine has no address but loopback, which is never proxied to")
        self.plane = SampanProcess(root, "--runtime", "none").up()
        self.kubectl = self.plane.kubectl
        self._authority = Authority(root)
        self._pair = self._authority.issue("tea", names=["tea.default.svc"])
        self._open = ExitStack()
        self.teas, self.port = None, 0

    def serve(self):
        ca = self.plane.data_dir / "pki" / "front-proxy-ca.crt"
        serving = served_teas(self._pair, ca, self.address, self.port)
        self.teas, self.port = self._open.enter_context(serving)

    def leave(self):
        self._open.close()

    def register(self):
        bundle = base64.b64encode(self._authority.ca_path.read_bytes()).decode()
        told = REGISTRATION.format(address=self.address, port=self.port, bundle=bundle)
        self.kubectl.apply(told)
        self.kubectl("wait", "--for=condition=Available", f"apiservice/v1.{GROUP}",
                     "--timeout=60s")  # fmt: skip

    def sampan(self, *arguments):
        command = [*sampan_command(*arguments), "--kubeconfig", str(self.plane.kubeconfig)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env=environment()
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    cluster = TeaCluster(tmp_path_factory.mktemp("tea"))
    try:
        cluster.serve()
        cluster.register()
        yield cluster
    finally:
        cluster.leave()
        code = cluster.plane.stop()
    assert code == 0, cluster.plane.output.read_text()


@pytest.fixture(autouse=True)
def no_teas(there):
    there.teas.teas.clear()


def columns(text):
    return [line.split() for line in text.splitlines()]


def test_kubectl_reads_and_writes_what_another_server_serves(there):
    kubectl = there.kubectl
    shown = columns(kubectl("get", "apiservice", f"v1.{GROUP}"))
    assert shown[0] == ["NAME", "SERVICE", "AVAILABLE", "AGE"]
    assert shown[1][:3] == [f"v1.{GROUP}", "default/tea", "True"]
    eventually(lambda: "teas" in kubectl("api-resources", "--api-group", GROUP), 60)
    kubectl.apply(TEA.format(name="assam", namespace="default"))
    assert columns(kubectl("get", "cuppa")) == [["NAME", "LEAVES"], ["assam", "black"]]
    assert kubectl("get", "tea", "assam", "-o", "jsonpath={.leaves}") == "black"
    eventually(lambda: f"apis/{GROUP}/v1" in kubectl("get", "--raw", "/openapi/v3"), 60)
    assert "Of which tree." in kubectl("explain", "tea.leaves")
    kubectl("delete", "tea", "assam")
    assert f'teas.{GROUP} "assam" not found' in kubectl.fails("get", "tea", "assam")
    assert there.teas.asked[-1].headers["x-remote-user"] == "kubernetes-admin"


def test_sampans_own_client_does_too(there):
    there.kubectl.apply(TEA.format(name="keemun", namespace="default"))
    assert columns(there.sampan("get", "teas")) == [["NAME", "LEAVES"], ["keemun", "black"]]
    assert (
        there.sampan("delete", "tea", "keemun")
        == f'tea.{GROUP} "keemun" deleted from default namespace\n'
    )


def test_the_official_client_lists_and_watches(there):
    with kube_config.new_client_from_config(str(there.plane.kubeconfig)) as api:
        teas = kube.CustomObjectsApi(api)
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Tea", "metadata": {"name": "oolong"}}
        teas.create_namespaced_custom_object(GROUP, "v1", "default", "teas", body)
        watch = kube_watch.Watch()
        seen = []
        for event in watch.stream(
            teas.list_namespaced_custom_object, GROUP, "v1", "default", "teas", _request_timeout=60
        ):
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            if event["type"] == "ADDED":
                teas.delete_namespaced_custom_object(GROUP, "v1", "default", "teas", "oolong")
            else:
                watch.stop()
        assert seen == [("ADDED", "oolong"), ("DELETED", "oolong")]
        groups = [group.name for group in kube.ApisApi(api).get_api_versions().groups]
        assert GROUP in groups


def test_a_namespace_takes_its_content_of_other_servers_with_it(there):
    there.kubectl("create", "namespace", "party")
    there.kubectl.apply(TEA.format(name="darjeeling", namespace="party"))
    there.kubectl.apply(TEA.format(name="sencha", namespace="default"))
    there.kubectl("delete", "namespace", "party", "--timeout=60s")
    assert list(there.teas.teas) == ["default/sencha"]


def test_a_server_that_goes_and_comes_back(there):
    kubectl = there.kubectl
    there.leave()
    # Nobody tells of that: the endpoints of its Service would go, too.
    kubectl("annotate", "service", "tea", "seen=gone", "--overwrite")
    eventually(lambda: "FailedDiscoveryCheck" in kubectl("get", "apiservice", f"v1.{GROUP}"), 60)
    condition = kubectl.get("apiservice", f"v1.{GROUP}")["status"]["conditions"][0]
    where = f"{there.address}:{there.port}"
    assert condition["message"].endswith(f"dial tcp {where}: connect: connection refused")
    assert "the server is currently unable to handle the request" in kubectl.fails("get", "teas")
    assert kubectl("get", "configmaps", "-o", "name")  # and everything else works
    assert "kube-root-ca.crt" in there.sampan("get", "configmaps")
    there.serve()
    kubectl("annotate", "service", "tea", "seen=back", "--overwrite")
    kubectl("wait", "--for=condition=Available", f"apiservice/v1.{GROUP}", "--timeout=60s")
    kubectl("get", "teas")
