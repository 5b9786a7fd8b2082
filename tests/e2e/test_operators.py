"""Operators and clients that know nothing of sampan, with custom resources of their own [A6]."""

import asyncio
import json
import subprocess
import sys
import textwrap

import kr8s
import pytest
from kr8s.asyncio.objects import new_class
from kubernetes import config as kube_config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError, UnprocessibleEntityError
from lightkube import Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource

from sampan.testing.parts.processes import eventually
from sampan.testing.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.slow, pytest.mark.kubectl]

SCHEMA = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "description": "how many"},
                "colour": {"type": "string", "default": "red", "enum": ["red", "blue"]},
            },
            "x-kubernetes-validations": [
                {"rule": "self.colour != 'blue' || self.size < 10", "message": "blue is small"}
            ],
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
]


def definition(plural, kind):
    names = {"plural": plural, "kind": kind, "shortNames": [plural[:3]], "categories": ["all"]}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}, "scale": SCALE},
        "additionalPrinterColumns": COLUMNS,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.judge.example"},
        "spec": {
            "group": "judge.example",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


GROUP = "/apis/judge.example/v1"
SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}


def widget(kind, name, **spec):
    return {
        "apiVersion": "judge.example/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory):
    process = SampanProcess(tmp_path_factory.mktemp("operators"), "--runtime", "none").up()
    yield process
    assert process.stop() == 0, process.output.read_text()


def defined(control_plane, plural, kind):
    kubectl = control_plane.kubectl
    kubectl("apply", "-f", "-", stdin=json.dumps(definition(plural, kind)))
    kubectl("wait", "--for=condition=Established", f"crd/{plural}.judge.example", "--timeout=10s")


OPERATOR = textwrap.dedent(
    """
    import kopf

    @kopf.on.startup()
    def settings(settings, **_):
        settings.persistence.finalizer = "judge.example/finalizer"

    @kopf.on.create("judge.example", "v1", "sails")
    def made(spec, name, namespace, **_):
        return {"seen": spec["size"], "colour": spec["colour"]}

    @kopf.on.update("judge.example", "v1", "sails", field="spec.size")
    def changed(old, new, patch, **_):
        patch.status["size"] = new

    @kopf.on.delete("judge.example", "v1", "sails")
    def gone(name, **_):
        print("GONE", name, flush=True)

    @kopf.timer("judge.example", "v1", "sails", interval=1)
    def tick(patch, status, **_):
        patch.status["ticks"] = status.get("ticks", 0) + 1
    """
)


@pytest.fixture
def operator(control_plane, tmp_path):
    defined(control_plane, "sails", "Sail")
    source = tmp_path / "operator.py"
    source.write_text(OPERATOR)
    said = tmp_path / "operator.out"
    with said.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--standalone", "-A", str(source)],
            stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
            env={"KUBECONFIG": str(control_plane.kubeconfig), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
    yield said
    process.terminate()
    assert process.wait(20) == 0, said.read_text()
    assert "Traceback" not in said.read_text()


def test_a_kopf_operator_of_a_custom_kind(operator, control_plane):
    """Create, update, delete and timer handlers, status patches, finalizers."""
    kubectl = control_plane.kubectl
    eventually(lambda: "Initial authentication has finished" in operator.read_text())
    kubectl("create", "-f", "-", stdin=json.dumps(widget("Sail", "one", size=3)))

    def status(key):
        return kubectl.get("sail", "one").get("status", {}).get(key)

    eventually(lambda: status("made") == {"seen": 3, "colour": "red"})
    assert kubectl.get("sail", "one")["metadata"]["finalizers"] == ["judge.example/finalizer"]
    kubectl("patch", "sail", "one", "--type=merge", "-p", '{"spec": {"size": 4}}')
    eventually(lambda: status("size") == 4)
    eventually(lambda: (status("ticks") or 0) >= 2)
    kubectl("delete", "sail", "one")
    eventually(lambda: "GONE one" in operator.read_text())
    assert not kubectl.exists("sail", "one")


def test_kubectl_knows_a_custom_kind(control_plane):
    """explain, short names, wide columns, categories, scale, diff, and strict validation."""
    kubectl = control_plane.kubectl
    defined(control_plane, "masts", "Mast")
    kubectl("apply", "-f", "-", stdin=json.dumps(widget("Mast", "m", size=3)))
    assert "how many" in kubectl("explain", "masts.spec.size")
    assert kubectl("get", "mas").split()[:4] == ["NAME", "SIZE", "m", "3"]
    assert "red" in kubectl("get", "masts", "-o", "wide")
    assert "mast.judge.example/m" in kubectl("get", "all", "-o", "name")
    kubectl("scale", "mast/m", "--replicas=5")
    assert kubectl.get("mast", "m")["spec"]["size"] == 5
    bad = widget("Mast", "b", size=30, colour="blue")
    assert "blue is small" in kubectl.fails("apply", "-f", "-", stdin=json.dumps(bad))
    unknown = widget("Mast", "b", size=3, nonsense=1)
    told = kubectl.fails("create", "-f", "-", stdin=json.dumps(unknown))
    assert 'unknown field "spec.nonsense"' in told
    kubectl("delete", "crd", "masts.judge.example")
    eventually(lambda: "NotFound" in kubectl.fails("get", "--raw", f"{GROUP}/masts"))


def test_the_dynamic_client_of_the_official_library(control_plane):
    defined(control_plane, "keels", "Keel")
    with kube_config.new_client_from_config(str(control_plane.kubeconfig)) as official:
        keels = DynamicClient(official).resources.get(api_version="judge.example/v1", kind="Keel")
        made = keels.create(body=widget("Keel", "k", size=2), namespace="default")
        assert made.spec.colour == "red"
        body = {"metadata": {"name": "k"}, "spec": {"size": 7}}
        keels.patch(body=body, namespace="default", content_type="application/merge-patch+json")
        with pytest.raises(UnprocessibleEntityError):
            keels.create(body=widget("Keel", "bad", size=0), namespace="default")
        seen = []
        for event in keels.watch(namespace="default", timeout=2):
            seen.append((event["type"], event["object"].spec.size))
        assert seen == [("ADDED", 7)]
        keels.delete(name="k", namespace="default")
        with pytest.raises(NotFoundError):
            keels.get(name="k", namespace="default")


def test_kr8s_with_a_class_of_its_own(control_plane):
    defined(control_plane, "oars", "Oar")

    async def story():
        api = await kr8s.asyncio.api(kubeconfig=str(control_plane.kubeconfig))
        oars = new_class("Oar", "judge.example/v1", namespaced=True, asyncio=True)
        oar = await oars(widget("Oar", "o", size=2), api=api, namespace="default")
        await oar.create()
        await oar.patch({"status": {"size": 2}}, subresource="status")
        await oar.refresh()
        assert oar.raw["status"] == {"size": 2}
        found = [one.name async for one in api.get("oars.judge.example", namespace="default")]
        assert found == ["o"]
        await oar.delete()

    asyncio.run(story())


def test_lightkube_with_a_generic_resource(control_plane):
    defined(control_plane, "tillers", "Tiller")
    tiller = create_namespaced_resource("judge.example", "v1", "Tiller", "tillers")
    config = KubeConfig.from_file(str(control_plane.kubeconfig))
    with Client(config=config, namespace="default", field_manager="judge") as client:
        made = client.create(tiller(metadata={"name": "t"}, spec={"size": 2}))
        assert made.spec["colour"] == "red"
        client.apply(tiller(metadata={"name": "t"}, spec={"size": 9}), force=True)
        assert [one.spec["size"] for one in client.list(tiller)] == [9]
        client.delete(tiller, "t")
