"""Operators and clients that know nothing of sampan, with custom resources of their own [A6]."""

import asyncio
import json
import subprocess
import sys
import textwrap
from contextlib import contextmanager

import kr8s
import pytest
from kr8s.asyncio.objects import new_class
from kubernetes import config as kube_config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError, UnprocessibleEntityError
from lightkube import Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource

from tests.support.parts.certificates import Authority
from tests.support.parts.kubectl import KubectlFailure
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess

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
    # Not by `kubectl wait`: an old one gives up where there are no conditions yet.
    name, path = f"{plural}.judge.example", '{.status.conditions[?(@.type=="Established")].status}'
    eventually(lambda: kubectl("get", "crd", name, "-o", f"jsonpath={path}") == "True")


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


@contextmanager
def kopf_run(control_plane, folder, text):
    """The file in which everything that it says can be read."""
    source, said = folder / "operator.py", folder / "operator.out"
    source.write_text(text)
    with said.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--standalone", "-A", str(source)],
            stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
            env={"KUBECONFIG": str(control_plane.kubeconfig), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
    try:
        yield said
    finally:
        process.terminate()
        code = process.wait(60)
    assert code == 0, said.read_text()
    assert "Traceback" not in said.read_text()


@pytest.fixture
def operator(control_plane, tmp_path):
    defined(control_plane, "sails", "Sail")
    with kopf_run(control_plane, tmp_path, OPERATOR) as said:
        yield said


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


ADMISSION = textwrap.dedent(
    """
    import kopf

    @kopf.on.startup()
    def settings(settings, **_):
        settings.admission.managed = "auto.judge.example"
        settings.admission.server = kopf.WebhookServer(
            addr="127.0.0.1", host="127.0.0.1", cafile="CA", certfile="CERT", pkeyfile="KEY"
        )

    @kopf.on.mutate("judge.example", "v1", "booms")
    def painted(spec, patch, **_):
        if spec["size"] > 5:
            patch.spec["colour"] = "blue"

    @kopf.on.validate("judge.example", "v1", "booms")
    def checked(spec, warnings, **_):
        if spec["size"] == 8:
            raise kopf.AdmissionError("eight is unlucky", code=400)
        warnings.append(f"a boom of {spec['size']}")
    """
)


def has_webhooks(kubectl, resource):
    try:
        return kubectl.get(resource, "auto.judge.example").get("webhooks")
    except KubectlFailure:
        return None  # it comes with the operator


def test_admission_by_kopfs_own_server(control_plane, tmp_path):
    """It writes its webhook configurations itself, and is asked from then on."""
    kubectl, authority = control_plane.kubectl, Authority(tmp_path)
    pair = authority.issue("webhook")
    text = ADMISSION.replace("CA", str(authority.ca_path)).replace("CERT", str(pair.cert_path))
    defined(control_plane, "booms", "Boom")
    with kopf_run(control_plane, tmp_path, text.replace("KEY", str(pair.key_path))):
        for kind in ("mutating", "validating"):
            resource = f"{kind}webhookconfigurations"
            eventually(lambda one=resource: has_webhooks(kubectl, one))
        make = ("create", "-f", "-")
        kubectl(*make, stdin=json.dumps(widget("Boom", "b6", size=6)))
        assert kubectl.get("boom", "b6")["spec"] == {"size": 6, "colour": "blue"}
        told = kubectl.fails(*make, stdin=json.dumps(widget("Boom", "b8", size=8)))
        assert "eight is unlucky" in told
        assert not kubectl.exists("boom", "b8")
        kubectl("delete", "boom", "b6")


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


@pytest.mark.usefixtures("leaves_connections")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
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
