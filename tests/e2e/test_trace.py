"""`sampan trace` of pods with real containers [X1]: each step is seen as what it is."""

import base64
import json
import os
import re
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sampan.api.rules.journey import journey_of, way_down_of
from tests.support.parts.certificates import Authority
from tests.support.parts.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.slow]
IMAGE = "localhost/test/busybox:1"
# Kept here; the picture of the documentation is one of these.
PICTURES = Path(os.environ.get("SAMPAN_PICTURES", "/tmp/sampan-pictures"))
WEBHOOK, WEBHOOK_SECONDS = "slow.example.com", 0.3


@pytest.fixture
def trace(cluster):
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}

    def run(*words, code=0):
        command = [sys.executable, "-m", "sampan", "trace", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


@pytest.fixture
def spans(trace):
    """The newest of each name."""

    def found(*words):
        return {span["name"]: span for span in json.loads(trace(*words, "-o", "json"))["spans"]}

    return found


def seconds(span):
    return span["ended"] - span["began"]


@pytest.fixture
def slow_webhook(kubectl, tmp_path):
    """Of pods with the label traced; the trace contexts that it was told."""
    authority, told = Authority(tmp_path), []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(self.headers.get("traceparent"))
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            time.sleep(WEBHOOK_SECONDS)
            asked["response"] = {"uid": asked["request"]["uid"], "allowed": True}
            body = json.dumps(asked).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    pair = authority.issue("webhook")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert_path, pair.key_path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    bundle = base64.b64encode(authority.ca_path.read_bytes()).decode()
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["pods"]}  # fmt: skip
    hook = {
        "name": WEBHOOK, "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "objectSelector": {"matchLabels": {"traced": "yes"}}, "timeoutSeconds": 30,
        "clientConfig": {"url": f"https://127.0.0.1:{server.server_port}/", "caBundle": bundle},
    }  # fmt: skip
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": WEBHOOK}, "webhooks": [hook],
    }  # fmt: skip
    kubectl("create", "-f", "-", stdin=json.dumps(configuration))
    yield told
    kubectl("delete", "validatingwebhookconfiguration", WEBHOOK)
    server.shutdown()
    server.server_close()


POD = """
apiVersion: v1
kind: Pod
metadata: {name: traced, namespace: lesson, labels: {traced: "yes"}}
spec:
  terminationGracePeriodSeconds: 30
  initContainers:
  - {name: first, image: PULLED, imagePullPolicy: Always, command: [sleep, "1"]}
  containers:
  - name: main
    image: PULLED
    command: [sh, -c, "trap 'exit 0' TERM; (sleep 2; touch /there) & sleep 3600 & wait"]
    lifecycle:
      postStart: {exec: {command: [sh, -c, "exit 0"]}}
      preStop: {exec: {command: [sleep, "1"]}}
    readinessProbe: {exec: {command: [test, -e, /there]}, periodSeconds: 1}
"""


def test_each_step_of_a_pod_is_seen_as_what_it_is(
    kubectl, trace, spans, slow_webhook, registry_image
):
    """A webhook of 300 ms, a pull, an init container, hooks, a slow probe, the way down, and the
    deletion of the namespace around it."""
    kubectl("create", "namespace", "lesson")
    kubectl("apply", "-f", "-", stdin=POD.replace("PULLED", registry_image))
    kubectl("wait", "--for=condition=Ready", "pod/traced", "-n", "lesson", "--timeout=120s",
            seconds=150)  # fmt: skip
    where = ("traced", "-n", "lesson")
    found = spans(*where)
    assert {
        "create pods", "queue", "filter and score", "bind", "create pods/binding",
        "pod worker starts", "sync pod", "cgroups", "sandbox and network", "volumes",
        "create first", "start first", "create main", "start main", "postStart hook of main",
        "CNI ADD",
    } <= found.keys()  # fmt: skip
    around, cni = found["sandbox and network"], found["CNI ADD"]
    assert around["began"] <= cni["began"] <= cni["ended"] <= around["ended"]
    assert seconds(found[f"webhook {WEBHOOK}"]) >= WEBHOOK_SECONDS
    assert int(found["image of first"]["facts"]["bytes"]) > 100_000
    assert "NodeResourcesFit" in found["filter and score"]["facts"]["costs"]
    assert seconds(found["first ran"]) >= 0.9
    assert found["first ran"]["facts"]["exit code"] == "0"
    assert found["readiness probe of main"]["facts"]["result"] == "successful"
    assert seconds(found["readiness probe of main"]) >= 1.0
    whole = json.loads(trace(*where, "-o", "json"))
    [told] = slow_webhook
    assert told.split("-")[1] == whole["traceId"]
    journey = journey_of(whole)
    assert sum(step.seconds for step in journey.critical) == pytest.approx(journey.seconds)
    assert journey.ready > journey.ended
    text = trace("pod/traced", "-n", "lesson")
    assert text.startswith("pod/traced: create → Running in ")
    assert "From Running to Ready" in text
    assert f"webhook {WEBHOOK}" in text
    picture = trace(*where, "-o", "svg")
    ElementTree.fromstring(picture)
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "trace.svg").write_text(picture)
    events = json.loads(trace(*where, "-o", "perfetto"))["traceEvents"]
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {
        "apiserver", "scheduler", "kubelet",
    }  # fmt: skip
    exported = json.loads(trace(*where, "-o", "otlp"))["resourceSpans"]
    assert len(exported) == 3
    request = trace("request", found["create pods"]["facts"]["audit-id"])
    assert "create pods by " in request
    assert f"webhook {WEBHOOK}" in request

    kubectl("delete", "namespace", "lesson", "--timeout=120s", seconds=150)
    gone = spans(*where)
    assert {
        "terminating pod", "preStop hook of main", "stop main", "stop sandbox and network",
        "remove volumes", "remove cgroups", "main ran", "delete pods", "CNI DEL",
    } <= gone.keys()  # fmt: skip
    assert seconds(gone["preStop hook of main"]) >= 0.9
    down = way_down_of(json.loads(trace(*where, "-o", "json")))
    assert sum(step.seconds for step in down.critical) == pytest.approx(down.seconds)
    assert "delete → gone in " in trace(*where)
    told = trace("ns/lesson")
    assert told.startswith("namespace/lesson: delete → gone in ")
    assert "Its pods: 1 deleted in " in told


def test_a_real_node_exports_what_the_dashboard_shows_of_it(kubectl):
    board = Path(__file__).parents[2] / "docs" / "metrics" / "grafana-dashboard.json"
    asked = set(re.findall(r"\b(kubelet_\w+?)(?:_bucket|_sum|_count)?[\[{)]", board.read_text()))
    assert len(asked) >= 5
    [node] = kubectl.get("nodes")["items"]
    path = f"/api/v1/nodes/{node['metadata']['name']}/proxy/metrics"
    found = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(kubectl("get", "--raw", path))
    }
    assert found >= {*asked, "kubelet_node_name", "process_start_time_seconds"}


CRASHING = """
apiVersion: v1
kind: Pod
metadata: {name: crashing}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: IMAGE, command: [sh, -c, "exit 3"]}]
"""
ESCAPE = {"name": "main", "image": IMAGE, "command": ["\x1b[2J\x1b]0;owned\x07evil"]}


def test_what_goes_wrong_is_seen_as_what_it_is(kubectl, trace, spans):
    """A crash loop, a node that is not there, an image that is not there, a command with escape
    sequences."""
    pods = {
        "homeless": {"nodeSelector": {"no": "such"}, "containers": [
            {"name": "main", "image": IMAGE}]},
        "imageless": {"containers": [{"name": "main", "image": "localhost/no/such:1",
                                      "imagePullPolicy": "Never"}]},
        "hostile": {"containers": [ESCAPE]},
    }  # fmt: skip
    kubectl("apply", "-f", "-", stdin=CRASHING.replace("IMAGE", IMAGE))
    for name, spec in pods.items():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    try:
        eventually(lambda: "back-off of main" in spans("crashing"), 60)
        found = spans("crashing")
        assert found["main ran"]["facts"]["exit code"] == "3"
        assert int(found["back-off of main"]["facts"]["restart"]) >= 1  # the last of its name
        assert "main ran (exit code 3" in trace("crashing")

        eventually(lambda: "filter and score" in spans("homeless"), 60)
        text = trace("homeless")
        assert text.startswith("pod/homeless: Pending ")
        assert "It stopped at: scheduler: filter and score (NodeAffinity)." in text
        assert "drop no=such from nodeSelector" in text  # as `sampan why` says it

        eventually(
            lambda: "error" in spans("imageless").get("image of main", {"facts": ""})["facts"]
        )
        text = trace("imageless")
        assert "It stopped at: kubelet: image of main (" in text

        eventually(
            lambda: "error" in spans("hostile").get("start main", {"facts": ""})["facts"], 60
        )
        for words in (("hostile",), ("hostile", "--all"), ("hostile", "-o", "svg")):
            assert not any(ord(char) < 32 and char != "\n" for char in trace(*words))
    finally:
        kubectl("delete", "pod", "crashing", *pods, "--now", "--timeout=60s", seconds=90)
    assert "no trace of pod never-was" in trace("never-was", code=1)
    assert "write pod/NAME" in trace("service/x", code=2)


def priority_pod(name, priority, cpu):
    container = {"name": "main", "image": IMAGE, "command": ["sleep", "3600"],
                 "resources": {"requests": {"cpu": f"{cpu}m"}}}  # fmt: skip
    spec = {"priorityClassName": priority, "terminationGracePeriodSeconds": 1,
            "containers": [container]}  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_a_preemption_and_a_rollout(kubectl, trace, spans):
    for name, value in (("trace-low", 1), ("trace-high", 1000)):
        kubectl("create", "priorityclass", name, f"--value={value}")
    [node] = kubectl.get("nodes")["items"]
    cpu = node["status"]["allocatable"]["cpu"]
    most = int(cpu.removesuffix("m")) if cpu.endswith("m") else 1000 * int(cpu)
    try:
        for name in ("trace-low", "trace-high"):
            pod = priority_pod(name, name, int(0.6 * most))
            kubectl("apply", "-f", "-", stdin=json.dumps(pod))
            kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s", seconds=150)
        found = spans("trace-high")
        assert found["preemption"]["facts"]["node"] == node["metadata"]["name"]
        assert "delete pods" in spans("trace-low")
        kubectl("create", "deployment", "fleet", f"--image={IMAGE}", "--replicas=2", "--",
                "sleep", "3600")  # fmt: skip
        kubectl("rollout", "status", "deployment/fleet", "--timeout=120s", seconds=150)
        text = trace("deploy/fleet")
        assert text.startswith("deployment/fleet: 2 pods in ")
        assert len([line for line in text.splitlines() if line.startswith("fleet-")]) == 2
        ElementTree.fromstring(trace("deploy/fleet", "-o", "svg"))
    finally:
        kubectl("delete", "deployment", "fleet", "--ignore-not-found", "--now")
        kubectl("delete", "pod", "trace-low", "trace-high", "--ignore-not-found", "--now")
        kubectl("delete", "priorityclass", "trace-low", "trace-high")
