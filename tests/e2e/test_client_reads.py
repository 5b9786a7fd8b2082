"""What the real kubectl and sampan's client show of the same objects is the same text [C6].

Nothing runs here but an API server, so that nothing changes between the two. Where kubectl's words
have changed since 1.32, tests/client_recording has the new ones.
"""

import difflib
import io
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from sampan.api.schema.published import Schema
from sampan.cli.main import main
from sampan.cli.session import Io
from tests.support.parts.served_api import served_api

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
    "drain node --dry-run=client --force",
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


def debug_pods(environment, run, words):
    """The pods that came of a command, and what was put into one; without what chance chose."""
    before = pods(environment)
    code, out, err = run(environment, "debug", *words, "--image=busybox", "--", "sleep", "1")
    assert code == 0, out + err
    found = pods(environment)
    new = [found[name] for name in found if name not in before]
    for pod in new:
        name = pod["metadata"]["name"]
        assert ours(environment, "delete", "pod", name, "--now", "--wait=false")[0] == 0
    meta = [pod["metadata"] for pod in new]
    for one in meta:  # newer kubectls say so, and the one at hand may be older
        one.get("labels", {}).pop("app.kubernetes.io/managed-by", None)
    return [
        {
            "labels": one.get("labels") or {},
            "annotations": one.get("annotations"),
            "spec": pod["spec"],
        }
        for one, pod in zip(meta, new, strict=True)
    ]


def pods(environment):
    items = json.loads(ours(environment, "get", "pods", "-o", "json")[1])["items"]
    return {item["metadata"]["name"]: item for item in items}


@pytest.mark.parametrize("profile", ["legacy", "general", "baseline", "netadmin", "restricted"])
def test_debug_makes_the_same_pod(environment, profile):
    for words in (("web", "--copy-to=copy", "-c=d"), ("node/node", "-c=d")):
        chosen = (*words, f"--profile={profile}")
        made = debug_pods(environment, ours, chosen)
        assert len(made) == 1
        assert made == debug_pods(environment, theirs, chosen)


@pytest.fixture
def programs(environment, tmp_path):
    """A PATH with sampan, and with it under kubectl's name."""
    script = (
        f"#!{sys.executable}\nimport sys\nfrom sampan.cmd.entry import main\nsys.exit(main())\n"
    )
    for name in ("sampan", "kubectl"):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    return {**environment, "PATH": f"{tmp_path}:{environment['PATH']}"}


def test_proxy_passes_answers_on_as_they_come(environment, programs, tmp_path):
    (tmp_path / "file.txt").write_text("static")
    command = ["sampan", "proxy", "-p", "0", "--www", str(tmp_path)]
    with subprocess.Popen(command, env=programs, stdout=subprocess.PIPE, text=True) as process:
        try:
            where = process.stdout.readline().split()[-1]

            def ask(path):
                return urllib.request.urlopen(f"http://{where}{path}", timeout=60)

            with ask("/api/v1/namespaces/default/pods/web") as answer:
                assert json.load(answer)["metadata"]["name"] == "web"
            with ask("/static/file.txt") as answer:
                assert answer.read() == b"static"
            with pytest.raises(urllib.error.HTTPError, match="403"):
                ask("/api/v1/namespaces/default/pods/web/exec")
            with pytest.raises(urllib.error.HTTPError, match="404"):
                ask("/apis/nope")
            with ask("/api/v1/namespaces/default/configmaps?watch=true") as answer:
                assert ours(environment, "create", "cm", "seen")[0] == 0
                names = (json.loads(line)["object"]["metadata"]["name"] for line in answer)
                assert "seen" in names  # while the watch goes on
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130


@pytest.mark.parametrize("program", ["sampan", "kubectl"])
def test_bash_completes_verbs_kinds_names_and_flags(programs, program):
    for typed, wanted in (
        (f"{program} desc", "describe"),
        (f"{program} get persistentvolumecl", "persistentvolumeclaims"),
        (f"{program} get pvc cl", "claim"),
        (f"{program} logs we", "web"),
        (f"{program} rollout rest", "restart"),
        (f"{program} get --all-n", "--all-namespaces"),
    ):
        script = (
            f"source <({program} completion bash); COMP_WORDS=({typed}); "
            f"COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); __start_{program}; echo ${{COMPREPLY[*]}}"
        )
        done = subprocess.run(
            ["bash", "-c", script], env=programs, capture_output=True, text=True, timeout=60
        )
        assert wanted in done.stdout.split(), (typed, done.stdout, done.stderr)
