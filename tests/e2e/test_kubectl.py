"""kubectl's own words, compared with what it says on an original v1.35.8 [C5, C6, A7].

Each story is a list of commands. What they print is compared with expected/<story>.txt, ages, uids
and addresses masked. Most of the texts were recorded on an original API server, where no other word
is right; `policies`, `what_there_is` and the prose about enums in `explain` are our own
(docs/compatibility.md says why). `SAMPAN_RECORD=1` writes a file anew, to be read critically. No
controller runs here, so nothing changes by itself between two commands. The texts are
those of one minor version of kubectl; another one words some of them differently.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from sampan.api import features
from sampan.api.schema.published import Schema
from sampan.apiserver.settings import ApiServerSettings
from tests.support.parts.kubectl import Kubectl, client_minor
from tests.support.parts.served_api import served_api
from tests.support.releases import MUTATING_POLICIES

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]

HERE = Path(__file__).parent
RECORDED_MINOR = 32
MASKS = (
    # A watch that ended within its first second: kubectl says so or not, as it happens.
    (r"(?m)^W\d{4} .*very short watch.*\n", ""),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?[+-]\d{4}( UTC)?|Z)", "TIME"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    # Not 100m or 300s, which are quantities and settings here.
    (r"(?m)(?<=\s)(\d{1,2}s|1[01]\ds|\d{1,2}m(\d{1,2}s)?|\d+d)(?=[\s)]|$)", "AGE"),
    (r"\b10\.(9[6-9]|1[01]\d)\.\d+\.\d+", "CLUSTER-IP"),
    (r"(?m)^[WEI]\d{4} \S+ +\d+ (\w+\.go):\d+", r"\1"),  # kubectl's own log lines
    (r'(resourceVersion: |resourceVersion": )"\d+"', r'\1"N"'),
    (r"https?://127\.0\.0\.1:\d+", "SERVER"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"kube-api-access-[a-z0-9]{5}\b", "kube-api-access-NAME"),
    (r"/tmp/(LIVE|MERGED)-\d+", r"\1"),
    (r"X509SHA256=[0-9a-f]+", "X509SHA256=HASH"),
    (r"v1\.35\.\d+\+sampan\S*", "v1.35.N"),
    (r"(?m)^(Client|Kustomize) Version: .*\n", ""),
    (r"(?m)^WARNING: version difference.*\n", ""),
    (r"(?m) +$", ""),
    (r"(?<=\S) {3,}", "   "),  # the width of a column follows what was masked in it
)

STORIES = {
    "what_there_is": """
        api-versions
        api-resources
        api-resources --namespaced=false --verbs=watch,delete -o name
        api-resources --api-group=apps -o wide
        api-resources --categories=all -o name
        version
        cluster-info
        get componentstatuses
        get --raw /healthz
        get namespace kube-system
        get all
        get nosuch
    """,
    "explain": """
        explain pod.spec.containers.env --recursive
        explain deployments.spec.strategy
        explain networkpolicy --recursive
        explain hpa.spec.metrics --api-version=autoscaling/v2 --recursive
        explain configmap.nosuch
        explain lease.spec --output=plaintext-openapiv2
    """,
    "create": """
        create -f all.yaml
        create -f all.yaml
        create namespace extra
        create configmap c --from-literal=a=1 --from-literal=b=2 -o yaml
        create secret generic s --from-literal=password=x -o jsonpath={.data}
        create deployment d --image=app:1 --replicas=2 -o name
        create service clusterip plain --tcp=80:8080
        create service externalname out --external-name=example.org
        create job j --image=app:1 -- true
        create cronjob cj --image=app:1 --schedule=*/5\\ *\\ *\\ *\\ *
        create ingress i --class=x --rule=a.example/x*=s:80
        create quota q --hard=pods=2,requests.cpu=1
        create pdb p --selector=app=web --min-available=1
        create priorityclass pc --value=7 --description=seven
        create role r --verb=get,list --resource=pods,deployments.apps
        create rolebinding rb --role=r --user=jane --serviceaccount=default:bot
        create clusterrole cr --verb=get --non-resource-url=/metrics
        create clusterrolebinding crb --clusterrole=cr --group=team
        create serviceaccount bot
        create token bot --duration=5m
        autoscale deployment d --min=1 --max=3 --cpu-percent=70
        run p --image=app:1 --labels=a=b --env=X=1 --port=80 --dry-run=client -o yaml
        run p --image=app:1 --dry-run=server
        run p --image=UPPER
        run p --image=app:1 --restart=Sometimes
        run p --image=app:1 --image-pull-policy=Sometimes
        get pod p
        get deploy,sa,job,cj,ing,pdb,hpa,role,rolebinding,svc -o wide
        get priorityclass pc
        get clusterrolebinding crb -o wide
    """,
    "get": """
        create -f all.yaml
        get pods
        get pods -o wide
        get pods --show-labels
        get pods -L app,tier
        get pods -l app=web,tier!=back
        get pods -l app=nobody
        get pods --field-selector=status.phase=Pending -o name
        get pods --field-selector=status.phase=Running
        get pods --field-selector=bad.field=1
        get pods -l a\\ in\\ (
        get pod web -o yaml
        get pod web -o json
        get pod web -o yaml --show-managed-fields
        get pod web -o jsonpath={.spec.containers[*].image}
        get pods -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[0].image
        get pods -o go-template={{range\\ .items}}{{.metadata.name}}{{end}}
        get pods,svc,cm,secret,pvc,ing,netpol,limits,quota,role,rolebinding
        get pvc,ing,netpol,rolebinding -o wide
        get pod nosuch
        get pod nosuch --ignore-not-found
        get pod/web svc/web
        get -f all.yaml -o name
        get pods --chunk-size=1 --no-headers
        get pods --server-print=false
        get pod web --subresource=status
    """,
    "describe": """
        create -f all.yaml
        describe pod web
        describe svc web
        describe cm kube-root-ca.crt
        describe secret hidden
        describe pvc data
        describe ingress web
        describe netpol deny
        describe limits limits
        describe role reader
        describe rolebinding readers
        describe namespace NAMESPACE
        describe pod nosuch
        describe priorityclass system-node-critical
        describe sa default
    """,
    "change": """
        create -f all.yaml
        edit configmap conf
        get configmap conf -o jsonpath={.data}
        patch configmap conf -p {"data":{"b":"3"}}
        patch configmap conf -p {"data":{"b":"3"}}
        patch configmap conf --type=merge -p {"data":{"b":null}}
        patch configmap conf --type=json -p [{"op":"replace","path":"/data/a","value":"7"}]
        patch configmap conf --type=json -p [{"op":"test","path":"/data/a","value":"0"}]
        patch configmap conf --type=json -p [{"op":"remove","path":"/data/zzz"}]
        patch configmap nosuch -p {}
        get configmap conf -o jsonpath={.data}
        patch pod web -p {"spec":{"containers":[{"name":"main","image":"app:2"}]}}
        get pod web -o jsonpath={.spec.containers[*].image}\\ {.metadata.generation}
        patch pod web -p {"metadata":{"name":"other"}}
        patch pod web -p {"spec":{"containers":[{"name":"main","image":""}]}}
        patch pod web --subresource=status --type=merge -p {"status":{"message":"hello"}}
        label pod web a=b
        label pod web a=c
        label pod web a=c --overwrite
        label pod web a- zz-
        label pod web bad/label/key=x
        label pods --all seen=yes
        annotate pod web note=x
        annotate pod web note=x
        annotate pod web note-
        set image pod/web main=app:3
        set serviceaccount deployment nosuch x
        replace -f config_map.yaml
        replace --force -f config_map.yaml
        get configmap conf -o jsonpath={.data}
        scale --replicas=3 deployment/nosuch
    """,
    "delete": """
        create -f all.yaml
        delete pod web --grace-period=0 --force
        delete configmap conf --wait=false
        delete configmap conf
        delete configmap conf --ignore-not-found
        delete secret -l no=such
        delete secret hidden --dry-run=server
        delete secret hidden -o name
        delete -f all.yaml --ignore-not-found --wait=false
        run a --image=app:1 --labels=x=y
        run b --image=app:1 --labels=x=y
        delete pods -l x=y --now
        run c --image=app:1
        delete pod c --cascade=orphan --wait=false
        get pod c -o jsonpath={.metadata.finalizers}
        delete svc,secrets --all
        delete namespace default
        get svc
    """,
    "apply": """
        apply -f all.yaml
        apply -f all.yaml
        diff -f config_map.yaml
        apply -f config_map.yaml --dry-run=server
        apply -f config_map.yaml --dry-run=client
        apply -f config_map.yaml
        diff -f config_map.yaml
        get configmap conf -o jsonpath={.data}
        apply view-last-applied configmap conf
        apply --server-side -f config_map.yaml --field-manager=other
        apply --server-side -f config_map_again.yaml --field-manager=third
        apply --server-side -f config_map_again.yaml --field-manager=third --force-conflicts
        apply --server-side -f config_map_again.yaml --field-manager=third --dry-run=server
        get configmap conf -o yaml --show-managed-fields
        apply -f config_map_again.yaml --prune -l app=conf
        apply -f bad.yaml
        apply -f bad.yaml --validate=ignore
        apply -f bad.yaml --validate=warn
        apply edit-last-applied configmap conf
    """,
    "nodes": """
        create -f node.yaml
        create -f node.yaml
        get nodes
        get nodes -o wide
        describe node worker
        cordon worker
        cordon worker
        get nodes
        uncordon worker
        taint node worker dedicated=x:NoSchedule
        taint node worker dedicated=x:NoSchedule
        taint node worker dedicated=y:NoSchedule --overwrite
        get node worker -o jsonpath={.spec.taints}
        taint node worker dedicated-
        taint node worker dedicated=x:Bad
        drain worker
        delete node worker
    """,
    "wait_and_events": """
        create -f all.yaml
        create -f event.yaml
        events
        get events
        get events.events.k8s.io -o wide
        events --for pod/web
        describe pod web
        wait pod/web --for=condition=Ready --timeout=1s
        wait pod/web --for=jsonpath={.status.phase}=Pending --timeout=5s
        wait pod/web --for=delete --timeout=1s
        wait pod/nosuch --for=delete --timeout=1s
        wait pod/nosuch --for=condition=Ready --timeout=1s
    """,
    "auth": """
        create -f all.yaml
        auth whoami
        auth whoami --as=jane --as-group=team -o yaml
        auth can-i create pods
        auth can-i create pods --as=jane
        auth can-i list pods --as=jane
        auth can-i get pods --subresource=log --as=jane
        auth can-i get /metrics --as=jane
        auth can-i --list --as=jane
        get secrets --as=jane
        get pods --as=jane
        create configmap x --as=jane
        auth reconcile -f roles.yaml
    """,
    "policies": """
        create -f policies.yaml
        create deployment d --image=app:1 --replicas=2
        create configmap limits --from-literal=most=1
        create deployment d --image=app:1 --replicas=2
        create deployment d --image=app:1 --replicas=1
        scale deployment d --replicas=3
        run p --image=app --labels=a=b
        get pod p --show-labels
        get validatingadmissionpolicies
        get validatingadmissionpolicybindings few-replicas
        get mutatingadmissionpolicies
        create -f broken_policy.yaml
        delete -f policies.yaml
        create deployment e --image=app:1 --replicas=2
    """,
}


# Without one, whoever writes an Ingress is warned; the original says nothing.
INGRESS_CLASS = """
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: x}
spec: {controller: example.com/ingress}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    minor = client_minor()
    if minor != RECORDED_MINOR:
        pytest.skip(f"the texts are those of kubectl 1.{RECORDED_MINOR}, this is 1.{minor}")
    settings = ApiServerSettings(ca_bundle_pem="CERTIFICATE\n", mount_service_account_tokens=True)
    with (
        features.used(MUTATING_POLICIES),
        served_api(Schema.load(), tmp_path_factory.mktemp("served"), settings) as api,
    ):
        home = tmp_path_factory.mktemp("home")
        Kubectl(api.admin, home)("apply", "-f", "-", stdin=INGRESS_CLASS)
        yield api


@pytest.fixture
def environment(served, tmp_path):
    """An editor that changes one value, a home without a cache, no colours, UTC."""
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/^  a: .*/  a: edited/' \"$1\"\n")
    editor.chmod(0o755)
    return {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(served.admin),
        "KUBE_EDITOR": str(editor), "TZ": "UTC",
    }  # fmt: skip


def masked(text):
    for pattern, instead in MASKS:
        text = re.sub(pattern, instead, text)
    return text


def told(story, namespace, environment, directory):
    """What the terminal shows, command by command."""
    for manifest in (HERE / "manifests").iterdir():
        text = manifest.read_text().replace("NAMESPACE", namespace)
        (directory / manifest.name).write_text(text)
    lines = []
    for line in filter(None, (one.strip() for one in STORIES[story].splitlines())):
        words = shlex.split(line.replace('"', '\\"').replace("NAMESPACE", namespace))
        done = subprocess.run(
            ["kubectl", "-n", namespace, *words], env=environment, cwd=directory,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        said = masked(done.stdout) + masked(done.stderr)
        code = f"[exit {done.returncode}]\n" if done.returncode else ""
        end = "" if not said or said.endswith("\n") else "\n"
        lines.append(f"$ kubectl {line}\n{said}{end}{code}\n")
    return "".join(lines)


@pytest.mark.parametrize("story", STORIES)
def test_kubectl_prints_what_was_reviewed(story, environment, tmp_path):
    """[C5, C6]"""
    namespace = f"kubectl-{story.replace('_', '-')}"
    make = ["kubectl", "create", "namespace", namespace]
    subprocess.run(make, env=environment, check=True, capture_output=True, timeout=60)
    said = told(story, namespace, environment, tmp_path)
    said = said.replace(namespace, "kubectl")
    expected = HERE / "expected" / f"{story}.txt"
    if os.environ.get("SAMPAN_RECORD"):
        expected.write_text(said)
    assert said == expected.read_text()
