"""What a real node says about usage, with kubectl as the witness [N19] [C6]."""

import json
import ssl
import urllib.error
import urllib.request

import pytest

from tests.support.parts.kubectl import KubectlFailure
from tests.support.parts.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"


@pytest.fixture(scope="module")
def busy(cluster):
    kubectl = cluster.kubectl
    limits = {"requests": {"cpu": "100m"}, "limits": {"cpu": "300m", "memory": "64Mi"}}
    container = {
        "name": "main", "image": IMAGE, "resources": limits,
        "command": ["sh", "-c", "echo hi; head -c 1000000 /dev/zero >/big; while :; do :; done"],
        "readinessProbe": {"exec": {"command": ["true"]}},
    }  # fmt: skip
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "busy"},
           "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}  # fmt: skip
    kubectl("create", "-f", "-", stdin=json.dumps(pod))
    kubectl("wait", "--for=condition=Ready", "pod/busy", "--timeout=50s")
    yield kubectl
    kubectl("delete", "pod", "busy", "--wait=false")


def node(kubectl):
    return kubectl.get("nodes")["items"][0]["metadata"]["name"]


@pytest.mark.kubectl_since(25)
def test_kubectl_top_shows_pods_and_nodes(busy):
    def cores():
        try:
            lines = busy("top", "pods", "--no-headers").splitlines()
        except KubectlFailure as early:
            if "metrics not available yet" in str(early):  # two samples make a figure
                return None
            raise
        found = [line.split() for line in lines if line.startswith("busy")]
        return found and int(found[0][1].removesuffix("m"))

    used = eventually(cores, 20, every=0.5)
    assert 100 < used < 400  # held by its limit
    name, cpu, _, memory, _ = busy("top", "nodes", "--no-headers").split()
    assert name == node(busy)
    assert int(cpu.removesuffix("m")) > 100
    assert memory.endswith("Mi")
    assert "main" in busy("top", "pod", "busy", "--containers")


def test_the_node_has_the_figures_that_dashboards_read(busy):
    base = f"/api/v1/nodes/{node(busy)}/proxy"
    cadvisor = busy("get", "--raw", f"{base}/metrics/cadvisor")
    assert 'container_memory_working_set_bytes{container="main"' in cadvisor
    assert "machine_cpu_cores" in cadvisor
    for name in ("cpu_cfs_throttled_seconds_total", "fs_usage_bytes", "memory_cache"):
        assert f'container_{name}{{container="main"' in cadvisor
    assert 'interface="eth0"' in cadvisor
    probes = busy("get", "--raw", f"{base}/metrics/probes")
    assert (
        'prober_probe_total{probe_type="Readiness",result="successful",container="main"' in probes
    )
    summary = json.loads(busy("get", "--raw", f"{base}/stats/summary"))
    pod = next(one for one in summary["pods"] if one["podRef"]["name"] == "busy")
    assert pod["containers"][0]["memory"]["workingSetBytes"] > 0
    assert pod["cpu"]["usageCoreNanoSeconds"] > 0
    assert pod["network"]["name"] == "eth0"
    assert pod["containers"][0]["logs"]["usedBytes"] > 0
    assert summary["node"]["fs"]["capacityBytes"] > 0


def test_what_a_container_wrote_into_its_own_layer_is_counted(busy):
    """containerd measures every ten seconds or so"""

    def used():
        summary = json.loads(
            busy("get", "--raw", f"/api/v1/nodes/{node(busy)}/proxy/stats/summary")
        )
        pod = next(one for one in summary["pods"] if one["podRef"]["name"] == "busy")
        rootfs = pod["containers"][0].get("rootfs") or {}
        return rootfs.get("usedBytes", 0) >= 1_000_000

    eventually(used, 40, every=1.0)


CHECKPOINTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: checkpoints}
rules: [{apiGroups: [""], resources: [nodes/checkpoint], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: checkpoints}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: checkpoints}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: kube-apiserver-kubelet-client}]
"""


def test_a_checkpoint_is_refused_by_name(busy):
    """The API server's own identity may not checkpoint unless somebody lets it."""
    busy.apply(CHECKPOINTS)
    url = f"/api/v1/nodes/{node(busy)}/proxy/checkpoint/default/busy/main"
    said = busy.fails("create", "--raw", url, "-f", "/dev/null")
    assert "checkpointing of default/busy/main failed" in said


SCRAPER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scraper}
rules: [{apiGroups: [""], resources: [nodes/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scraper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scraper}
subjects: [{kind: ServiceAccount, name: default, namespace: default}]
"""


def test_who_may_scrape_the_node_itself_is_the_apis_word(kubectl):
    """Straight at the node, with a service account's token and without."""
    kubectl.apply(SCRAPER)
    token = kubectl("create", "token", "default").strip()
    status = kubectl.get("nodes")["items"][0]["status"]
    address = next(one["address"] for one in status["addresses"] if one["type"] == "InternalIP")
    port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    anybody = ssl._create_unverified_context()

    def code(path, **headers):
        request = urllib.request.Request(f"https://{address}:{port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, context=anybody, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code

    assert code("/metrics", Authorization=f"Bearer {token}") == 200
    assert code("/metrics/resource", Authorization=f"Bearer {token}") == 200
    assert code("/pods", Authorization=f"Bearer {token}") == 403
    assert code("/metrics", Authorization="Bearer nonsense") == 401
    assert code("/metrics") == 401
    kubectl("delete", "clusterrole,clusterrolebinding", "scraper")
