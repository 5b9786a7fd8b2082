"""Real clients over real TLS: kubectl and the official Python client as judges."""

import pytest
from kubernetes import client as kube
from kubernetes import config as kube_config
from kubernetes import watch as kube_watch

from sampan.api.schema.published import Schema
from tests.support.parts.kubectl import Kubectl
from tests.support.parts.served_api import served_api

pytestmark = pytest.mark.slow

MANIFEST = """
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: app:1}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: team}
spec: {selector: {app: web}, ports: [{port: 80, protocol: TCP}]}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with served_api(Schema.load(), tmp_path_factory.mktemp("served")) as api:
        yield api


@pytest.fixture
def kubectl(served, tmp_path):
    return Kubectl(served.admin, tmp_path)


@pytest.mark.kubectl
def test_kubectl_runs_shows_changes_and_deletes_a_pod(kubectl):
    """[C6]"""
    assert kubectl("run", "web", "--image=app:1", "--labels=a=b") == "pod/web created\n"
    assert "Pending" in kubectl("get", "pods", "-o", "wide")
    assert "Name:             web" in kubectl("describe", "pod", "web")
    kubectl("label", "pod", "web", "x=y")
    kubectl("annotate", "pod", "web", "note=1")
    patch = '[{"op": "remove", "path": "/metadata/labels/x"}]'
    kubectl("patch", "pod", "web", "--type=json", "-p", patch)
    assert kubectl.get("pod", "web")["metadata"]["labels"] == {"a": "b"}
    assert kubectl("get", "pods", "-l", "a=b", "-o", "name") == "pod/web\n"
    assert kubectl("get", "pods", "--field-selector=status.phase=Running", "-o", "name") == ""
    assert kubectl("delete", "pod", "web") == 'pod "web" deleted\n'


@pytest.mark.kubectl
def test_kubectl_applies_scales_and_removes_a_manifest(kubectl):
    """[C6]"""
    assert kubectl.apply(MANIFEST).count("created") == 3
    assert kubectl.apply(MANIFEST).count("unchanged") == 3
    kubectl("-n", "team", "scale", "deployment", "web", "--replicas=5")
    kubectl("-n", "team", "set", "image", "deployment/web", "main=app:2")
    deployment = kubectl.get("-n", "team", "deployment", "web")
    assert deployment["spec"]["replicas"] == 5
    assert deployment["metadata"]["generation"] == 3
    kubectl(
        "-n", "team", "expose", "deployment", "web", "--name=out", "--port=80", "--type=NodePort"
    )
    node_port = kubectl.get("-n", "team", "service", "out")["spec"]["ports"][0]["nodePort"]
    assert 30000 <= node_port <= 32767
    kubectl("-n", "team", "delete", "deployment,service", "--all")


@pytest.mark.kubectl
def test_kubectl_create_sends_protobuf_and_is_understood(kubectl):
    """[A11]"""
    kubectl("create", "namespace", "proto")
    run = ("-n", "proto", "create")
    kubectl(*run, "deployment", "d", "--image=app:1", "--replicas=0")
    assert kubectl.get("-n", "proto", "deployment", "d")["spec"]["replicas"] == 0
    kubectl(*run, "configmap", "c", "--from-literal=a=b")
    assert kubectl.get("-n", "proto", "configmap", "c")["data"] == {"a": "b"}
    kubectl(*run, "secret", "generic", "s", "--from-literal=a=b")
    assert kubectl.get("-n", "proto", "secret", "s")["data"] == {"a": "Yg=="}
    kubectl(*run, "service", "nodeport", "n", "--tcp=80:8080")
    kubectl(*run, "job", "j", "--image=app:1", "--", "true")
    kubectl(*run, "role", "r", "--verb=get", "--resource=pods")
    kubectl(*run, "serviceaccount", "bot")
    assert kubectl(*run, "token", "bot").count(".") == 2


@pytest.mark.kubectl
def test_kubectl_says_who_it_is_and_what_it_may(kubectl, served, tmp_path):
    """[A1] [A2]"""
    assert "admin" in kubectl("auth", "whoami")
    assert kubectl("auth", "can-i", "delete", "nodes") == "yes\n"
    nobody = Kubectl(served.nobody, tmp_path)
    assert (
        'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the '
        'namespace "default"'
    ) in nobody.fails("get", "pods")
    assert "Forbidden" in kubectl.fails("get", "pods", "--as=bob")


@pytest.mark.kubectl
def test_kubectl_explains_and_lists_what_there_is(kubectl):
    assert "terminationGracePeriodSeconds" in kubectl("explain", "pod.spec")
    assert "deployments" in kubectl("api-resources")
    assert "apps/v1" in kubectl("api-versions")
    assert "readyz check passed" in kubectl("get", "--raw", "/readyz?verbose")
    assert "unknown field" in kubectl.fails(
        "create", "-f", "-", stdin="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nfoo: 1\n"
    )


def test_a_service_account_token_opens_the_door_until_the_account_is_gone(kubectl, served):
    """[A1]"""
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot").strip()
    setup = kube.Configuration()
    kube_config.load_kube_config(str(served.admin), client_configuration=setup)
    setup.cert_file = setup.key_file = None
    setup.api_key = {"authorization": f"Bearer {token}"}
    robot = kube.CoreV1Api(kube.ApiClient(setup))
    with pytest.raises(kube.ApiException) as refused:
        robot.list_namespaced_pod("default")
    assert refused.value.status == 403
    assert "system:serviceaccount:default:robot" in refused.value.body
    kubectl("delete", "serviceaccount", "robot")
    with pytest.raises(kube.ApiException) as unknown:
        robot.list_namespaced_pod("default")
    assert unknown.value.status == 401


def test_the_official_client_creates_watches_and_deletes(served):
    api = kube.CoreV1Api(kube_config.new_client_from_config(str(served.admin)))
    body = kube.V1ConfigMap(metadata=kube.V1ObjectMeta(name="seen"), data={"a": "b"})
    start = api.list_namespaced_config_map("default").metadata.resource_version
    api.create_namespaced_config_map("default", body)
    api.patch_namespaced_config_map("seen", "default", {"data": {"a": "c"}})
    api.delete_namespaced_config_map("seen", "default")
    events = []
    stream = kube_watch.Watch()
    for event in stream.stream(
        api.list_namespaced_config_map, "default", resource_version=start, timeout_seconds=5
    ):
        events.append((event["type"], event["object"].data["a"]))
        if len(events) == 3:
            stream.stop()
    assert events == [("ADDED", "b"), ("MODIFIED", "c"), ("DELETED", "c")]
    api.api_client.close()
