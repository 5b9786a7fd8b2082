"""Client libraries that know nothing of sampan, over real TLS, as judges [A5, A7, A11]."""

import asyncio
import json
import subprocess
import sys
import textwrap
from contextlib import closing

import kr8s
import pytest
from kr8s.asyncio.objects import ConfigMap as Kr8sConfigMap
from kr8s.asyncio.objects import Deployment as Kr8sDeployment
from kr8s.asyncio.objects import Pod as Kr8sPod
from kubernetes import client as kube
from kubernetes import config as kube_config
from kubernetes import watch as kube_watch
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError
from lightkube import ApiError as LightkubeError
from lightkube import Client, KubeConfig
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace, Pod, ServiceAccount
from lightkube.types import CascadeType, PatchType

from tests.support.parts.kubectl import Kubectl
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory):
    process = SampanProcess(tmp_path_factory.mktemp("clients"), "--runtime", "none").up()
    yield process
    assert process.stop() == 0, process.output.read_text()


@pytest.fixture
def namespace(control_plane, request):
    """One of its own for each test: what one leaves behind is not seen by another."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:60].rstrip("-")
    control_plane.kubectl("create", "namespace", name)
    return name


def config_map(name, **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": name}},
        "data": data,
    }


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        },
    },
}


# --- the official client ------------------------------------------------------------------


@pytest.fixture
def official(control_plane):
    with kube_config.new_client_from_config(str(control_plane.kubeconfig)) as client:
        yield client


@pytest.fixture
def dynamic(official, tmp_path):
    return DynamicClient(official, cache_file=str(tmp_path / "discovery.json"))


def test_the_dynamic_client_finds_every_kind(dynamic):
    """[A5] found through discovery, not from what the library was generated from"""
    kinds = {
        (one.group_version, one.kind)
        for one in dynamic.resources.search()
        if one.kind and not one.kind.endswith("List")
    }
    for wanted in (
        ("v1", "Pod"), ("apps/v1", "Deployment"), ("batch/v1", "CronJob"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"), ("policy/v1", "PodDisruptionBudget"),
        ("networking.k8s.io/v1", "NetworkPolicy"), ("storage.k8s.io/v1", "StorageClass"),
        ("resource.k8s.io/v1", "ResourceClaim"), ("discovery.k8s.io/v1", "EndpointSlice"),
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ):  # fmt: skip
        assert wanted in kinds
    assert dynamic.resources.get(api_version="v1", kind="Pod").subresources.keys() >= {
        "status", "log", "exec", "eviction", "binding", "ephemeralcontainers", "resize",
    }  # fmt: skip


def test_the_dynamic_client_writes_and_reads(dynamic, namespace):
    """[A7] create, get, list, replace, the four patches, conflicts, delete"""
    maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
    made = maps.create(config_map("one", a="1"), namespace=namespace)
    assert made.metadata.resourceVersion
    changed = made.to_dict()
    changed["data"]["a"] = "2"
    assert maps.replace(changed, namespace=namespace).data.a == "2"
    with pytest.raises(ConflictError) as stale:
        maps.replace(changed, namespace=namespace)
    assert "the object has been modified" in stale.value.summary()
    for content_type, body in (
        ("application/json-patch+json", [{"op": "replace", "path": "/data/a", "value": "3"}]),
        ("application/merge-patch+json", {"data": {"b": "x", "a": None}}),
        ("application/strategic-merge-patch+json", {"data": {"c": "y"}}),
    ):
        maps.patch(body, name="one", namespace=namespace, content_type=content_type)
    assert maps.get(name="one", namespace=namespace).data.to_dict() == {"b": "x", "c": "y"}
    applied = maps.server_side_apply(
        config_map("one", b="mine"), name="one", namespace=namespace,
        field_manager="judge", force_conflicts=True,
    )  # fmt: skip
    assert applied.data.b == "mine"
    assert "judge" in {one.manager for one in applied.metadata.managedFields}
    found = maps.get(namespace=namespace, label_selector="app=one")
    assert [one.metadata.name for one in found.items] == ["one"]
    maps.delete(name="one", namespace=namespace)
    with pytest.raises(NotFoundError):
        maps.get(name="one", namespace=namespace)


def test_the_dynamic_client_watches_from_where_it_read(dynamic, namespace):
    """[A7]"""
    maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
    start = maps.get(namespace=namespace).metadata.resourceVersion
    maps.create(config_map("seen", a="1"), namespace=namespace)
    maps.patch({"data": {"a": "2"}}, name="seen", namespace=namespace,
               content_type="application/merge-patch+json")  # fmt: skip
    maps.delete(name="seen", namespace=namespace)
    events = []
    for event in maps.watch(namespace=namespace, resource_version=start, timeout=5):
        events.append((event["type"], event["object"].data.a))
        if len(events) == 3:
            break
    assert events == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


def test_the_generated_client_reads_what_it_wrote(official, namespace):
    """[A7, A9] typed kinds, status and scale, binding, dry run, refusals, pages, watch"""
    core, apps = kube.CoreV1Api(official), kube.AppsV1Api(official)
    made = apps.create_namespaced_deployment(namespace, DEPLOYMENT)
    assert made.spec.strategy.rolling_update.max_surge == "25%"
    scaled = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
    assert scaled.spec.replicas == 3
    eventually(lambda: len(core.list_namespaced_pod(namespace).items) == 3)
    assert apps.read_namespaced_deployment("web", namespace).spec.replicas == 3
    with pytest.raises(kube.ApiException) as refused:
        core.create_namespaced_config_map(namespace, config_map("Odd_Name"))
    assert refused.value.status == 422
    assert "a lowercase RFC 1123 subdomain must consist of" in refused.value.body
    core.create_namespaced_config_map(namespace, config_map("dry"), dry_run="All")
    with pytest.raises(kube.ApiException) as absent:
        core.read_namespaced_config_map("dry", namespace)
    assert absent.value.status == 404
    page = core.list_namespaced_pod(namespace, limit=2)
    assert page.metadata.remaining_item_count == 1
    rest = core.list_namespaced_pod(namespace, limit=2, _continue=page.metadata._continue)
    assert len(page.items) + len(rest.items) == 3
    stream = kube_watch.Watch()
    seen = set()
    for event in stream.stream(core.list_namespaced_pod, namespace, timeout_seconds=5):
        seen.add(event["object"].metadata.name)
        if len(seen) == 3:
            stream.stop()
    assert len(seen) == 3


# --- kr8s ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("leaves_connections")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_kr8s_creates_watches_and_deletes(control_plane, namespace):
    """[A7]"""

    async def story():
        api = await kr8s.asyncio.api(kubeconfig=str(control_plane.kubeconfig), namespace=namespace)
        assert (await api.version())["minor"] == "35"
        one = await Kr8sConfigMap(config_map("one", a="1"), namespace=namespace, api=api)
        await one.create()
        assert await one.exists()
        await one.patch({"data": {"b": "2"}})
        await one.label({"tier": "x"})
        await one.annotate({"note": "y"})
        await one.refresh()
        assert one.raw["data"] == {"a": "1", "b": "2"}
        found = [each.name async for each in api.get("configmaps", label_selector="tier=x")]
        assert found == ["one"]
        events = []
        async for kind, each in api.watch("configmaps", label_selector="tier=x"):
            events.append((kind, each.name))
            if kind == "ADDED":
                await one.delete()
            else:
                break
        assert events == [("ADDED", "one"), ("DELETED", "one")]
        deployment = await Kr8sDeployment(DEPLOYMENT, namespace=namespace, api=api)
        await deployment.create()
        await deployment.scale(2)
        await deployment.refresh()
        assert deployment.replicas == 2
        pod = await Kr8sPod(
            {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
            namespace=namespace,
            api=api,
        )
        await pod.create()
        assert not await pod.ready()
        assert {each.name async for each in kr8s.asyncio.get("pods", namespace=namespace, api=api)}
        await pod.delete()

    asyncio.run(story())


# --- lightkube ----------------------------------------------------------------------------


@pytest.fixture
def lightkube(control_plane, namespace):
    config = KubeConfig.from_file(str(control_plane.kubeconfig))
    with Client(config=config, namespace=namespace, field_manager="judge") as client:
        yield client


def test_lightkube_applies_watches_and_deletes(lightkube, namespace):
    """[A7] server-side apply, conflicts, patches, watch, cascade"""
    client = lightkube
    metadata = ObjectMeta(name="one", namespace=namespace)
    made = client.apply(ConfigMap(metadata=metadata, data={"a": "1"}))
    assert made.metadata.managedFields[0].manager == "judge"
    with pytest.raises(LightkubeError) as taken:
        client.apply(ConfigMap(metadata=metadata, data={"a": "2"}), field_manager="other")
    assert taken.value.status.code == 409
    assert 'conflict with "judge": .data.a' in taken.value.status.message
    client.apply(ConfigMap(metadata=metadata, data={"a": "2"}), field_manager="other", force=True)
    for kind, patch in (
        (PatchType.MERGE, {"data": {"b": "x"}}),
        (PatchType.JSON, [{"op": "add", "path": "/data/c", "value": "y"}]),
        (PatchType.STRATEGIC, {"data": {"b": None}}),
    ):
        client.patch(ConfigMap, "one", patch, patch_type=kind)
    assert client.get(ConfigMap, "one").data == {"a": "2", "c": "y"}
    pod = Pod(
        metadata=ObjectMeta(name="p"),
        spec=PodSpec(containers=[Container(name="c", image="i:1")], schedulerName="nobody"),
    )
    listed = client.list(Pod)
    assert list(listed) == []
    start = listed.resourceVersion
    client.create(pod)
    client.delete(Pod, "p", cascade=CascadeType.BACKGROUND)
    kinds = []
    with closing(client.watch(Pod, resource_version=start)) as events:
        for kind, each in events:
            kinds.append((kind, each.metadata.name))
            if kind == "DELETED":
                break
    assert kinds[0] == ("ADDED", "p")
    assert kinds[-1] == ("DELETED", "p")
    assert [one.metadata.name for one in client.list(ServiceAccount)] == ["default"]
    assert namespace in {one.metadata.name for one in client.list(Namespace)}
    assert list(client.list(Deployment, namespace="*", labels={"none": "such"})) == []


# --- kopf ---------------------------------------------------------------------------------

OPERATOR = textwrap.dedent(
    """
    import kopf

    @kopf.on.startup()
    def settings(settings, **_):
        settings.persistence.finalizer = "judge.example/finalizer"
        settings.posting.level = 20

    @kopf.on.create("configmaps", labels={"watched": "yes"})
    def made(body, name, namespace, patch, logger, **_):
        patch.metadata.annotations["judge.example/made"] = body["data"]["a"]
        kopf.info(body, reason="Seen", message=f"{namespace}/{name} is known")
        return {"said": "hello"}

    @kopf.on.update("configmaps", labels={"watched": "yes"}, field="data.a")
    def changed(old, new, patch, **_):
        patch.metadata.annotations["judge.example/changed"] = f"{old} to {new}"

    @kopf.on.delete("configmaps", labels={"watched": "yes"})
    def gone(name, logger, **_):
        print("GONE", name, flush=True)

    @kopf.on.event("apps", "v1", "deployments")
    def event(type, name, **_):
        print("EVENT", type, name, flush=True)
    """
)


@pytest.fixture
def operator(control_plane, namespace, tmp_path):
    """A process of its own, as an operator is: what it does to its loop and logs stays there."""
    source = tmp_path / "operator.py"
    source.write_text(OPERATOR)
    said = tmp_path / "operator.out"
    with said.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--standalone", "-n", namespace, str(source)],
            stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
            env={"KUBECONFIG": str(control_plane.kubeconfig), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
    yield said
    process.terminate()
    assert process.wait(60) == 0, said.read_text()
    assert "Traceback" not in said.read_text()


@pytest.mark.kubectl
def test_a_kopf_operator_runs_unchanged(operator, control_plane, namespace):
    """[A7] finalizers, annotations, events, and its watch over a life of an object"""
    kubectl: Kubectl = control_plane.kubectl
    in_namespace = ("-n", namespace)
    watched = config_map("one", a="1")
    watched["metadata"]["labels"] = {"watched": "yes"}
    eventually(lambda: "Initial authentication has finished" in operator.read_text())
    kubectl("create", *in_namespace, "-f", "-", stdin=json.dumps(watched))

    def annotation(key):
        found = kubectl.get(*in_namespace, "configmap", "one")["metadata"]
        return found.get("annotations", {}).get(f"judge.example/{key}")

    eventually(lambda: annotation("made") == "1")
    meta = kubectl.get(*in_namespace, "configmap", "one")["metadata"]
    assert meta["finalizers"] == ["judge.example/finalizer"]
    kubectl("patch", *in_namespace, "configmap", "one", "-p", '{"data": {"a": "2"}}')
    eventually(lambda: annotation("changed") == "1 to 2")
    kubectl("create", *in_namespace, "deployment", "web", "--image=app:1", "--replicas=0")
    eventually(lambda: "EVENT ADDED web" in operator.read_text())
    kubectl("delete", *in_namespace, "configmap", "one")
    eventually(lambda: "GONE one" in operator.read_text())
    assert not kubectl.exists(*in_namespace, "configmap", "one")
    eventually(lambda: "Seen" in kubectl("get", "events", *in_namespace))
