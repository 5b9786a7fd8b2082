"""The controllers as kubectl's user meets them: real containers, and a cluster without nodes."""

import base64
import json

import pytest

from tests.support.parts.processes import Program, eventually
from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"


def manifest(kind, name, spec, version="apps/v1", **meta):
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}
    return json.dumps(obj)


def template(app, script="sleep 1000", **spec):
    container = {
        "name": "c",
        "image": IMAGE,
        "command": ["sh", "-c", f"trap 'exit 0' TERM; {script} & wait"],
        **spec.pop("container", {}),
    }
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **spec}}


def selector(app):
    return {"matchLabels": {"app": app}}


@pytest.fixture
def namespace(kubectl, request):
    name = request.node.name.replace("_", "-")[:50].strip("-")
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name)


def test_a_deployment_is_created_scaled_updated_undone_and_restarted(kubectl, namespace):
    def web(*arguments, stdin=None):
        return kubectl("-n", namespace, *arguments, stdin=stdin)

    spec = {"replicas": 1, "selector": selector("web"), "template": template("web")}
    web("create", "-f", "-", stdin=manifest("Deployment", "web", spec))
    assert "successfully rolled out" in web("rollout", "status", "deployment/web")
    web("scale", "deployment/web", "--replicas=2")
    assert "successfully rolled out" in web("rollout", "status", "deployment/web")
    web("set", "env", "deployment/web", "TURN=2")
    web("set", "image", "deployment/web", f"c={IMAGE}")
    assert "successfully rolled out" in web("rollout", "status", "deployment/web")
    history = web("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    web("rollout", "undo", "deployment/web")
    assert "successfully rolled out" in web("rollout", "status", "deployment/web")
    assert "TURN" not in web("get", "deployment", "web", "-o", "yaml").split("last-applied")[0]
    web("rollout", "pause", "deployment/web")
    web("rollout", "resume", "deployment/web")
    web("rollout", "restart", "deployment/web")
    assert "successfully rolled out" in web("rollout", "status", "deployment/web")
    web("autoscale", "deployment/web", "--min=3", "--max=4", "--cpu-percent=50")
    eventually(
        lambda: web("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}") == "3"
    )
    assert "SuccessfulRescale" in web("get", "events")


def test_a_stateful_set_keeps_its_data_and_a_claim_takes_it_away(cluster, kubectl, namespace):
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Mi"}},
        },
    }
    script = "test -f /data/born || date > /data/born; sleep 1000"
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    spec = {
        "replicas": 2,
        "serviceName": "db",
        "selector": selector("db"),
        "template": template("db", script, container=mounts, terminationGracePeriodSeconds=1),
        "volumeClaimTemplates": [claim],
    }
    db = manifest("StatefulSet", "db", spec)
    kubectl("-n", namespace, "create", "-f", "-", stdin=db)
    done = kubectl("-n", namespace, "rollout", "status", "statefulset/db")
    assert "partitioned roll out complete" in done or "rolling update complete" in done

    def born():
        return kubectl("-n", namespace, "exec", "db-0", "--", "cat", "/data/born")

    eventually(lambda: bool(born()))
    before = born()
    kubectl("-n", namespace, "delete", "pod", "db-0")
    kubectl("-n", namespace, "rollout", "status", "statefulset/db")
    assert born() == before
    claims = kubectl.get("pvc", "-n", namespace)["items"]
    assert [one["spec"]["storageClassName"] for one in claims] == ["standard", "standard"]
    volumes = {one["spec"]["volumeName"] for one in claims}
    root = cluster.data_dir / "volumes"
    assert volumes <= {one.name for one in root.iterdir()}
    kubectl("-n", namespace, "delete", "statefulset", "db")
    kubectl("-n", namespace, "delete", "pvc", "--all")
    eventually(lambda: not volumes & {one.name for one in root.iterdir()})
    eventually(
        lambda: not volumes & {one["metadata"]["name"] for one in kubectl.get("pv")["items"]}
    )


@pytest.mark.kubectl_since(25)
def test_daemons_jobs_and_jobs_by_the_clock(kubectl, namespace):
    daemon = {"selector": selector("agent"), "template": template("agent")}
    kubectl("-n", namespace, "create", "-f", "-", stdin=manifest("DaemonSet", "agent", daemon))
    kubectl("-n", namespace, "rollout", "status", "daemonset/agent")
    kubectl("-n", namespace, "create", "job", "once", f"--image={IMAGE}", "--", "true")
    kubectl("-n", namespace, "wait", "--for=condition=complete", "job/once", "--timeout=50s")
    schedule = ("--schedule=0 0 1 1 *", f"--image={IMAGE}")
    kubectl("-n", namespace, "create", "cronjob", "yearly", *schedule, "--", "true")
    kubectl("-n", namespace, "create", "job", "now", "--from=cronjob/yearly")
    kubectl("-n", namespace, "wait", "--for=condition=complete", "job/now", "--timeout=50s")
    assert "0 0 1 1 *" in kubectl("-n", namespace, "get", "cronjob", "yearly")


@pytest.mark.kubectl_since(25)
def test_a_drain_respects_a_budget(own_cluster):
    own_cluster.up("--runtime", "simulated", "--nodes", "2")
    kubectl = own_cluster.kubectl
    kubectl("create", "deployment", "web", "--image=anything:1", "--replicas=2")
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=2")
    kubectl("rollout", "status", "deployment/web")
    eventually(lambda: kubectl.get("pdb", "web")["status"].get("currentHealthy") == 2)
    node = kubectl.get("pods")["items"][0]["spec"]["nodeName"]
    said = kubectl.fails("drain", node, "--ignore-daemonsets", "--timeout=2s")
    assert "Cannot evict pod as it would violate the pod's disruption budget" in said
    kubectl("scale", "deployment/web", "--replicas=3")
    kubectl("rollout", "status", "deployment/web")
    kubectl("drain", node, "--ignore-daemonsets", "--timeout=50s")
    kubectl("rollout", "status", "deployment/web")
    nodes = {one["spec"]["nodeName"] for one in kubectl.get("pods")["items"]}
    assert node not in nodes
    kubectl("uncordon", node)


@pytest.mark.kubectl_since(25)
def test_a_drain_stops_real_containers_as_far_as_a_budget_allows(kubectl, namespace):
    spec = {
        "replicas": 2,
        "selector": selector("web"),
        "template": template("web", terminationGracePeriodSeconds=1),
    }
    kubectl("-n", namespace, "create", "-f", "-", stdin=manifest("Deployment", "web", spec))
    budget = ("pdb", "web", "--selector=app=web", "--min-available=2")
    kubectl("-n", namespace, "create", *budget)
    kubectl("-n", namespace, "rollout", "status", "deployment/web")
    healthy = "jsonpath={.status.currentHealthy}"
    eventually(lambda: kubectl("-n", namespace, "get", "pdb", "web", "-o", healthy) == "2")
    before = {one["metadata"]["name"] for one in kubectl.get("pods", "-n", namespace)["items"]}
    [node] = kubectl.get("nodes")["items"]
    name = node["metadata"]["name"]
    # Other tests have pods on this node, too.
    drain = ("drain", name, "--ignore-daemonsets", "--pod-selector=app=web")
    try:
        assert "would violate the pod's disruption budget" in kubectl.fails(*drain, "--timeout=2s")
        patch = '{"spec":{"minAvailable":0}}'
        kubectl("-n", namespace, "patch", "pdb", "web", "--type=merge", "-p", patch)
        kubectl(*drain, "--timeout=50s")
        after = kubectl.get("pods", "-n", namespace)["items"]
        assert not before & {one["metadata"]["name"] for one in after}
        assert {one["status"]["phase"] for one in after} == {"Pending"}, "there is no other node"
    finally:
        kubectl("uncordon", name)
    assert "successfully rolled out" in kubectl(
        "-n", namespace, "rollout", "status", "deployment/web"
    )


@pytest.mark.kubectl_since(25)
def test_the_same_at_large_on_simulated_nodes(own_cluster):
    """Ten nodes, and by the hundred what the tests above have by one or two."""
    own_cluster.up("--runtime", "simulated", "--nodes", "10")
    kubectl = own_cluster.kubectl
    done = "successfully rolled out"
    kubectl("create", "deployment", "web", "--image=anything:1", "--replicas=200")
    assert done in kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("set", "image", "deployment/web", "anything=anything:2")
    assert done in kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("scale", "deployment/web", "--replicas=100")
    assert done in kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    images = kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}").split()
    assert images == ["anything:1"] * 100
    plain = {"containers": [{"name": "c", "image": "anything:1"}]}
    pods = {"metadata": {"labels": {"app": "agent"}}, "spec": plain}
    daemon = {"selector": selector("agent"), "template": pods}
    kubectl("create", "-f", "-", stdin=manifest("DaemonSet", "agent", daemon))
    assert done in kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")
    agents = kubectl("get", "pods", "-l", "app=agent", "-o", "jsonpath={.items[*].spec.nodeName}")
    assert len(set(agents.split())) == 10
    ended = {"simulated.sampan.dev/exit-after-seconds": "0"}
    once = {"metadata": {"annotations": ended}, "spec": {**plain, "restartPolicy": "Never"}}
    spec = {"completions": 50, "parallelism": 20, "completionMode": "Indexed", "template": once}
    kubectl("create", "-f", "-", stdin=manifest("Job", "many", spec, "batch/v1"))
    kubectl("wait", "--for=condition=complete", "job/many", "--timeout=60s")
    assert kubectl.get("job", "many")["status"]["completedIndexes"] == "0-49"
    kubectl("delete", "deployment,daemonset,job", "--all", "--cascade=foreground")
    assert kubectl.get("pods")["items"] == []


def test_without_nodes_garbage_namespaces_finalizers_and_owners_just_work(own_cluster):
    """The complaint number one about control planes without nodes."""
    own_cluster.up("--runtime", "none")
    kubectl = own_cluster.kubectl
    kubectl("create", "deployment", "web", "--image=anything:1", "--replicas=3")
    eventually(lambda: len(kubectl.get("pods")["items"]) == 3)
    kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=50s")
    assert kubectl.get("rs")["items"] == []
    assert kubectl.get("pods")["items"] == []
    kubectl("create", "namespace", "busy")
    kubectl("-n", "busy", "create", "deployment", "web", "--image=anything:1")
    kubectl("-n", "busy", "create", "configmap", "held")
    finalizers = '{"metadata":{"finalizers":["example.com/held"]}}'
    kubectl("-n", "busy", "patch", "configmap", "held", "--type=merge", "-p", finalizers)
    kubectl("delete", "namespace", "busy", "--wait=false")

    def waits():
        conditions = kubectl.get("namespace", "busy")["status"].get("conditions") or []
        found = {one["type"]: one for one in conditions}
        return "example.com/held" in found.get("NamespaceFinalizersRemaining", {}).get(
            "message", ""
        )

    eventually(waits)
    free = '{"metadata":{"finalizers":null}}'
    kubectl("-n", "busy", "patch", "configmap", "held", "--type=merge", "-p", free)
    eventually(lambda: not kubectl.exists("namespace", "busy"))
    owner = json.loads(kubectl("create", "configmap", "owner", "-o", "json"))
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    owned = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "owned", "ownerReferences": [reference]},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(owned))
    kubectl("delete", "configmap", "owner")
    eventually(lambda: not kubectl.exists("secret", "owned"))


def test_controllers_can_be_left_out_and_run_in_a_process_of_their_own(own_cluster):
    """[C] `--controllers`, the lease, and what needs keys: root CA and token secrets."""
    names = ("job", "root-ca-cert-publisher", "serviceaccount-token")
    left_out = ",".join(["*", *(f"-{one}" for one in names)])
    own_cluster.up("--runtime", "simulated", "--controllers", left_out)
    kubectl = own_cluster.kubectl
    annotations = {"simulated.sampan.dev/exit-after-seconds": "0"}
    pod = {"containers": [{"name": "c", "image": "anything:1"}], "restartPolicy": "Never"}
    spec = {"template": {"metadata": {"annotations": annotations}, "spec": pod}}
    kubectl("create", "-f", "-", stdin=manifest("Job", "once", spec, "batch/v1"))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "token",
            "annotations": {"kubernetes.io/service-account.name": "default"},
        },
        "type": "kubernetes.io/service-account-token",
    }
    kubectl("create", "-f", "-", stdin=json.dumps(secret))
    kubectl("create", "deployment", "web", "--image=anything:1")
    kubectl("rollout", "status", "deployment/web")
    assert "job-name" not in kubectl("get", "pods", "--show-labels")
    # The API server puts it into a new namespace; whether it stays there is the controller's.
    root_ca = ("configmap", "kube-root-ca.crt")
    kubectl("delete", *root_ca)
    assert not kubectl.exists(*root_ca)
    assert "data" not in kubectl.get("secret", "token")
    [key] = own_cluster.data_dir.rglob("sa.key")
    flags = (
        "--kubeconfig", str(own_cluster.kubeconfig), "--controllers", ",".join(names),
        "--service-account-private-key-file", str(key), "--secure-port", "0",
    )  # fmt: skip
    output = own_cluster.root / "controllers.out"
    elsewhere = Program([*sampan_command("controllers"), *flags], output, environment())
    try:
        kubectl("wait", "--for=condition=complete", "job/once", "--timeout=50s")
        lease = kubectl.get("lease", "kube-controller-manager", "-n", "kube-system")
        assert lease["spec"]["holderIdentity"]
        eventually(lambda: kubectl.exists(*root_ca))
        eventually(lambda: "token" in kubectl.get("secret", "token").get("data", {}))
        data = kubectl.get("secret", "token")["data"]
        token = base64.b64decode(data["token"]).decode()
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        answer = kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(review))
        user = json.loads(answer)["status"]["user"]
        assert user["username"] == "system:serviceaccount:default:default"
        assert "BEGIN CERTIFICATE" in base64.b64decode(data["ca.crt"]).decode()
    finally:
        assert elsewhere.stop(20) == 0
