"""`sampan apply` is server-side, and shares objects with the kubectl that applies client-side."""

import io
import json

import pytest

from sampan.cli.main import main
from sampan.cli.session import Io


def config_map(name, label="apply", **data):
    metadata = {"name": name, "labels": {"test": label}}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return json.dumps(obj)


@pytest.fixture
def sampan(cluster):
    """What it printed and complained of, and how it ended."""

    def run(*words, stdin="", program="sampan"):
        said, complaints = io.StringIO(), io.StringIO()
        home = cluster.root / "home"
        environment = {"HOME": str(home), "KUBECONFIG": str(cluster.kubeconfig), "PATH": "/bin"}
        streams = Io(io.BytesIO(stdin.encode()), said, complaints, environment)
        code = main(words, program=program, io=streams)
        return said.getvalue(), complaints.getvalue(), code

    return run


@pytest.fixture
def namespace(kubectl, request):
    name = request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-")
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def managers(kubectl, namespace, name):
    obj = kubectl.get("cm", name, "-n", namespace, "--show-managed-fields")
    return {(entry["manager"], entry["operation"]) for entry in obj["metadata"]["managedFields"]}


def test_it_says_created_configured_unchanged(sampan, namespace, kubectl):
    """[C6] the words that scripts wait for, whoever does the merging."""
    said = [
        sampan("apply", "-n", namespace, "-f", "-", stdin=config_map("words", a=value))
        for value in ("1", "1", "2")
    ]
    words = [out.split()[-1] for out, _, _ in said]
    assert words == ["created", "unchanged", "configured"], said
    assert managers(kubectl, namespace, "words") == {("kubectl", "Apply")}
    out, _, _ = sampan(
        "apply", "--server-side", "-n", namespace, "-f", "-", stdin=config_map("words", a="2")
    )
    assert out == "configmap/words serverside-applied\n"


def test_an_object_goes_from_kubectl_to_sampan_and_back(sampan, namespace, kubectl):
    """[C6] what a file no longer has is gone, whoever applied it before."""

    def theirs(**data):
        kubectl("apply", "-n", namespace, "-f", "-", stdin=config_map("shared", **data))

    def ours(**data):
        flags = ("-n", namespace, "-f", "-")
        out, complaints, code = sampan("apply", *flags, stdin=config_map("shared", **data))
        assert (code, complaints) == (0, ""), out

    def there():
        return kubectl.get("cm", "shared", "-n", namespace)["data"]

    theirs(a="1", b="1")
    ours(a="2", c="1")
    assert there() == {"a": "2", "c": "1"}
    assert ("kubectl-client-side-apply", "Update") not in managers(kubectl, namespace, "shared")
    theirs(a="3", d="1")
    assert there() == {"a": "3", "d": "1"}
    out, _, code = sampan(
        "diff", "-n", namespace, "-f", "-", stdin=config_map("shared", a="3", e="1")
    )
    assert code == 1
    assert "-  d:" in out
    assert "+  e:" in out
    ours(a="3", e="1")
    assert there() == {"a": "3", "e": "1"}


def test_a_conflict_says_what_to_do(sampan, namespace, kubectl):
    """[A7]"""
    words = ("apply", "-n", namespace, "-f", "-")
    sampan(*words, stdin=config_map("disputed", a="1"))
    change = json.dumps({"data": {"a": "9"}})
    kubectl("patch", "cm", "disputed", "-n", namespace, "--field-manager=hand", "-p", change)
    out, complaints, code = sampan(*words, stdin=config_map("disputed", a="2"))
    assert (out, code) == ("", 1)
    assert 'Apply failed with 1 conflict: conflict with "hand" using v1: .data.a' in complaints
    assert "--force-conflicts" in complaints
    out, _, code = sampan(*words, "--force-conflicts", stdin=config_map("disputed", a="2"))
    assert (out, code) == ("configmap/disputed configured\n", 0)


def test_prune_finds_what_either_applied(sampan, namespace, kubectl):
    """[C6]"""
    kubectl("apply", "-n", namespace, "-f", "-", stdin=config_map("by-kubectl", a="1"))
    sampan("apply", "-n", namespace, "-f", "-", stdin=config_map("by-sampan", a="1"))
    kubectl("create", "cm", "by-hand", "-n", namespace)
    kubectl("label", "cm", "by-hand", "-n", namespace, "test=apply")
    words = ("apply", "--prune", "-l", "test=apply", "--prune-allowlist=core/v1/ConfigMap")
    out, complaints, code = sampan(*words, "-n", namespace, "-f", "-", stdin=config_map("kept"))
    assert (code, complaints) == (0, "")
    assert sorted(out.splitlines()) == [
        "configmap/by-kubectl pruned",
        "configmap/by-sampan pruned",
        "configmap/kept created",
    ]
    assert kubectl.exists("cm", "by-hand", "-n", namespace)


def test_flags_of_the_client_choose_the_client(sampan, namespace, kubectl):
    """[C6] and kubectl is client-side whatever its name stands for."""
    words = ("apply", "-n", namespace, "-f", "-")
    out, _, _ = sampan(*words, "--dry-run=client", stdin=config_map("chosen", a="1"))
    assert out == "configmap/chosen created (dry run)\n"
    for number, flag in enumerate(("--server-side=false", "--force", "--overwrite=false")):
        name = f"chosen-{number}"
        assert sampan(*words, flag, stdin=config_map(name, a="1"))[2] == 0
        assert managers(kubectl, namespace, name) == {("kubectl-client-side-apply", "Update")}
    out, _, _ = sampan(*words, stdin=config_map("linked", a="1"), program="kubectl")
    assert managers(kubectl, namespace, "linked") == {("kubectl-client-side-apply", "Update")}
    both = config_map("chosen-0", a="1") + "\n---\n" + config_map("chosen-1", a="1")
    out, complaints, _ = sampan(*words, "-o", "json", stdin=both)
    assert complaints == ""
    assert [item["metadata"]["name"] for item in json.loads(out)["items"]] == [
        "chosen-0",
        "chosen-1",
    ]
