"""What the real kubectl and sampan's client show of the same objects is the same text [C6].

Nothing runs here but an API server, so that nothing changes between the two. Where kubectl's words
have changed since 1.32, tests/client_recording has the new ones.
"""

import difflib
import io
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from sampan.api.schema.published import Schema
from sampan.cli.main import main
from sampan.cli.session import Io
from sampan.testing.parts.served_api import served_api

pytestmark = [pytest.mark.kubectl, pytest.mark.kubectl_since(32), pytest.mark.slow]

MANIFESTS = Path(__file__).parent / "manifests" / "read.yaml"
COMMANDS = (
    "describe deploy web", "describe job job", "describe hpa web", "describe svc web",
    "describe endpointslice web-1", "describe ingress web", "describe netpol web",
    "describe pv read", "describe pvc claim", "describe pod web", "describe node node",
    "describe quota quota", "describe ns default", "describe clusterrole read",
    "describe crd crons.read.example", "describe pods,svc -l app=web", "get all",
    "get pods -o wide", "get hpa,job,ingress,pvc", "events -o json", "explain pods",
    "explain pod.spec.containers", "explain deploy.spec.strategy --recursive",
    "explain deploy.spec.strategy.type", "explain pods --recursive", "explain nope",
    "explain pods.metadata", "explain pods.nope", "explain svc.spec.type",
    "explain crds.spec.versions.schema.openAPIV3Schema.not.not.properties",
    "explain pod.spec.containers.resources.limits", "rollout history deploy",
    "rollout history deploy/web --revision=7", "rollout history deploy/web --revision=1",
    "rollout undo deploy/web --dry-run=client", "rollout status job",
    "rollout status deploy -w=false",
    "rollout status deploy -l app=nope", "set env deploy/web --list", "wait pod/nope --for=delete",
    "wait pod -l app=nope --for=delete", "wait pod web --for=condition=Ready --timeout=0",
    "wait pod,deploy --all --for=condition=Nope --timeout=0",
    "logs -l app=nope", "logs deploy/nope", "logs web -c nope", "auth can-i --list",
    "get pods -w --request-timeout=1", "drain node --dry-run=client --force",
)  # fmt: skip
MASKS = (
    (r"\b(\d+[smhdy])+\b", "AGE"),
    (r"(?m)^[IEW]\d{4} .*?\] ", "LOG] "),
    # Since 1.33: what is in the cluster no longer, or what was added.
    (r"(?m)^ *Kube-Proxy Version:.*\n", ""),
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with served_api(Schema.load(), tmp_path_factory.mktemp("served")) as api:
        known = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(api.admin)}
        code, out, err = ours(known, "create", "-f", str(MANIFESTS))
        assert code == 0, out + err
        for obj in yaml.safe_load_all(MANIFESTS.read_text()):
            if "status" in obj:
                patch = yaml.safe_dump({"status": obj["status"]})
                name = f"{obj['kind']}/{obj['metadata']['name']}"
                words = ("patch", name, "--subresource=status", "--type=merge", "-p", patch)
                code, out, err = ours(known, *words)
                assert code == 0, out + err
        create_replica_sets(known)
        yield known


def create_replica_sets(environment):
    """The deployment's: of its first template, and of the present one."""
    deployment = json.loads(ours(environment, "get", "deploy", "web", "-o", "json")[1])
    meta, template = deployment["metadata"], deployment["spec"]["template"]
    owner = {
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": meta["uid"],
        "controller": True,
    }  # fmt: skip
    for revision, image in ((1, "nginx:1.25"), (2, "nginx:1.26")):
        template["spec"]["containers"][0]["image"] = image
        template["metadata"]["labels"]["pod-template-hash"] = str(revision)
        annotations = {"deployment.kubernetes.io/revision": str(revision)}
        found = {
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": f"web-{revision}",
                "labels": template["metadata"]["labels"], "ownerReferences": [owner],
                "annotations": annotations,
            },
            "spec": {
                "replicas": revision, "selector": deployment["spec"]["selector"],
                "template": template,
            },
        }  # fmt: skip
        code, out, err = ours(environment, "create", "-f", "-", stdin=json.dumps(found))
        assert code == 0, out + err


def ours(environment, *words, stdin=""):
    out, err = io.StringIO(), io.StringIO()
    code = main(words, io=Io(io.BytesIO(stdin.encode()), out, err, environment))
    return code, out.getvalue(), err.getvalue()


def theirs(environment, *words):
    done = subprocess.run(
        ["kubectl", *words], env=environment, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def shown(answer):
    code, out, err = answer
    text = f"{code}\n{out}|{err}"
    for pattern, by in MASKS:
        text = re.sub(pattern, by, text)
    return text.splitlines()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_same_is_shown_of_the_same_objects(environment, command):
    words = command.split()
    wanted, found = shown(theirs(environment, *words)), shown(ours(environment, *words))
    assert found == wanted, "\n".join(difflib.unified_diff(wanted, found, lineterm=""))
