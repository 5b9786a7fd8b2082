"""Probes of real containers, with kubectl as the witness [N13]."""

import contextlib
import json
import re
import ssl
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import pytest

from tests.support.parts.certificates import Authority
from tests.support.parts.processes import eventually

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.kubectl,
    pytest.mark.slow,
    pytest.mark.runtime("native", "cri"),
]

IMAGE = "localhost/test/busybox:1"
QUICK = {"probes.sampan.dev/period-seconds": "0.2"}


def create(kubectl, name, container, annotations=QUICK, **spec):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": IMAGE, **container}],
            **spec,
        },
    }
    kubectl("create", "-f", "-", stdin=json.dumps(pod))


def script(text):
    return {"command": ["sh", "-c", f"trap exit TERM; {text}; while :; do sleep 0.1; done"]}


def main(kubectl, name):
    return (kubectl.get("pod", name)["status"].get("containerStatuses") or [{}])[0]


def messages(kubectl, name, reason):
    found = kubectl.get("events", f"--field-selector=involvedObject.name={name},reason={reason}")
    return [one["message"] for one in found["items"]]


def test_readiness_over_http_follows_the_container_up_and_down(kubectl):
    serve = script("mkdir /w; echo hi >/w/ready; httpd -p 8080 -h /w")
    probe = {"httpGet": {"path": "/ready", "port": "web"}, "failureThreshold": 1}
    ports = [{"name": "web", "containerPort": 8080}]
    create(kubectl, "http-ready", {**serve, "readinessProbe": probe, "ports": ports})
    kubectl("wait", "--for=condition=Ready", "pod/http-ready", "--timeout=50s")
    kubectl("exec", "http-ready", "--", "rm", "/w/ready")
    kubectl("wait", "--for=condition=Ready=false", "pod/http-ready", "--timeout=50s")
    said = eventually(lambda: messages(kubectl, "http-ready", "Unhealthy"))
    assert "Readiness probe failed: HTTP probe failed with statuscode: 404" in said
    assert main(kubectl, "http-ready")["restartCount"] == 0
    kubectl("exec", "http-ready", "--", "touch", "/w/ready")
    kubectl("wait", "--for=condition=Ready", "pod/http-ready", "--timeout=50s")
    kubectl("delete", "pod", "http-ready", "--wait=false")


def test_a_command_that_fails_as_liveness_restarts_the_container(kubectl):
    probe = {"exec": {"command": ["cat", "/alive"]}, "failureThreshold": 2}
    create(kubectl, "alive", {**script("touch /alive; sleep 1.5; rm /alive"),
                              "livenessProbe": probe})  # fmt: skip
    eventually(lambda: main(kubectl, "alive").get("restartCount", 0) >= 1)
    sentence = "Container main failed liveness probe, will be restarted"
    eventually(lambda: sentence in messages(kubectl, "alive", "Killing"))
    missing = "can't open '/alive'"
    eventually(lambda: any(missing in one for one in messages(kubectl, "alive", "Unhealthy")))
    kubectl("delete", "pod", "alive", "--wait=false")


def test_a_startup_probe_over_tcp_holds_the_others_back(kubectl):
    slow = script("sleep 1.5; httpd -p 9000")
    startup = {"tcpSocket": {"port": 9000}, "failureThreshold": 100}
    liveness = {"exec": {"command": ["false"]}, "failureThreshold": 1}
    create(kubectl, "slow-start", {**slow, "startupProbe": startup, "livenessProbe": liveness})
    eventually(lambda: "running" in main(kubectl, "slow-start").get("state", {}))
    assert main(kubectl, "slow-start")["started"] is False
    eventually(lambda: main(kubectl, "slow-start").get("restartCount") == 1)
    said = messages(kubectl, "slow-start", "Unhealthy")
    assert any("connect: connection refused" in one for one in said), said
    kubectl("delete", "pod", "slow-start", "--wait=false")


def test_a_command_that_hangs_is_a_failure_in_time(kubectl):
    probe = {"exec": {"command": ["sleep", "30"]}, "timeoutSeconds": 1}
    create(kubectl, "hangs", {**script("true"), "readinessProbe": probe})
    said = eventually(lambda: messages(kubectl, "hangs", "Unhealthy"))
    assert said[0] == 'Readiness probe failed: command timed out: "sleep 30" timed out after 1s'
    assert main(kubectl, "hangs")["ready"] is False
    kubectl("delete", "pod", "hangs", "--wait=false")


class Application(ThreadingHTTPServer):
    """What a pod would serve, where a test can look into it: probes may name another host."""

    def __init__(self, certificate=None):
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked, self.status = [], 200  # (path, headers), and what is answered to /health
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.cert_path, certificate.key_path)
            # The handshake is left to the thread of the connection.
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def probe(self, path="/health", **words):
        get = {"host": "127.0.0.1", "port": self.server_port, "path": path, **words}
        return {"httpGet": get, "failureThreshold": 1, "timeoutSeconds": 5}

    def close(self):
        self.shutdown()
        self.server_close()
        self._thread.join()


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path, dict(self.headers)))
        elsewhere = {
            "/here": "/health",
            "/away": "http://localhost:1/health",
            "/round": "/round",
        }.get(self.path)
        self.send_response(302 if elsewhere else self.server.status)
        if elsewhere:
            self.send_header("location", elsewhere)
        self.end_headers()

    def log_message(self, *words):
        pass

    def handle(self):
        with contextlib.suppress(OSError):  # a client that does not speak TLS, or went away
            super().handle()


@pytest.fixture
def application():
    application = Application()
    yield application
    application.close()


@pytest.fixture
def secured(tmp_path):
    application = Application(Authority(tmp_path).issue("nobody-checks-this"))
    yield application
    application.close()


def test_http_probes_follow_upstream_s_rules_for_tls_headers_and_redirects(
    kubectl, application, secured
):
    headers = [{"name": "X-Custom", "value": "yes"}, {"name": "User-Agent", "value": "mine"}]
    pods = {
        "tls": secured.probe(scheme="HTTPS"),
        "named": application.probe("/named?a=b", httpHeaders=headers),
        "here": application.probe("/here"),
        "away": application.probe("/away"),
        "round": application.probe("/round"),
        "tls-plain": secured.probe(),
    }
    for name, probe in pods.items():
        create(kubectl, name, {**script("true"), "readinessProbe": probe})
    for name in ("tls", "named", "here", "away"):
        kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=50s")
    _, sent = secured.asked[0]
    assert re.fullmatch(r"kube-probe/1\.\d+", sent["user-agent"])
    assert (sent["accept"], sent["connection"]) == ("*/*", "close")
    sent = next(head for path, head in application.asked if path == "/named?a=b")
    assert (sent["x-custom"], sent["user-agent"]) == ("yes", "mine")
    [warning] = set(messages(kubectl, "away", "ProbeWarning"))
    assert warning == ("Readiness probe warning: Probe terminated redirects, Response body: ")
    said = eventually(lambda: messages(kubectl, "round", "Unhealthy"))
    assert "stopped after 10 redirects" in said[0]
    eventually(lambda: messages(kubectl, "tls-plain", "Unhealthy"))
    for name in ("round", "tls-plain"):
        assert main(kubectl, name)["ready"] is False
    kubectl("delete", "pod", *pods, "--wait=false")


def test_readiness_reaches_the_api_at_once_and_periods_may_be_below_a_second(kubectl, application):
    """The figures are in /metrics/probes"""

    def asked(path):
        return sum(path == each for each, _ in application.asked)

    create(kubectl, "quick", {**script("true"), "readinessProbe": application.probe()})
    every_second = {**application.probe("/steady"), "periodSeconds": 1}
    create(kubectl, "steady", {**script("true"), "readinessProbe": every_second}, annotations={})
    kubectl("wait", "--for=condition=Ready", "pod/quick", "pod/steady", "--timeout=50s")
    before, beside = asked("/health"), asked("/steady")
    eventually(lambda: asked("/health") - before > 2 * (asked("/steady") - beside) + 10)
    kubectl("delete", "pod", "steady", "--wait=false")
    application.status = 500
    eventually(lambda: main(kubectl, "quick")["ready"] is False)
    node = kubectl.get("pod", "quick")["spec"]["nodeName"]
    figures = kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/probes")
    about = 'container="main",pod="quick",namespace="default"'
    for result in ("successful", "failed"):
        assert f'prober_probe_total{{probe_type="Readiness",result="{result}",{about}' in figures
    assert f'prober_probe_duration_seconds_count{{probe_type="Readiness",{about}}}' in figures
    kubectl("delete", "pod", "quick")
    figures = kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/probes")
    assert 'pod="quick"' not in figures


class Health(grpc.GenericRpcHandler):
    """grpc.health.v1: the service is the request's first field, the status the answer's."""

    status = 1

    def service(self, details):
        if details.method == "/grpc.health.v1.Health/Check":
            return grpc.unary_unary_rpc_method_handler(self._check)
        return None

    def _check(self, request, context):
        if request[2:] == b"nobody":
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return bytes([8, self.status])


@pytest.fixture
def health():
    server = grpc.server(futures.ThreadPoolExecutor(2))
    health = Health()
    server.add_generic_rpc_handlers((health,))
    health.port = server.add_insecure_port("0.0.0.0:0")
    server.start()
    yield health
    server.stop(0).wait()


def test_grpc_health_is_asked_of_the_pod_s_own_address(kubectl, health):
    """On the host's network that is the node's"""

    def probe(service=""):
        return {"grpc": {"port": health.port, "service": service}, "failureThreshold": 1}

    pods = {"healthy": probe("shop"), "stranger": probe("nobody")}
    for name, one in pods.items():
        create(kubectl, name, {**script("true"), "readinessProbe": one}, hostNetwork=True)
    kubectl("wait", "--for=condition=Ready", "pod/healthy", "--timeout=50s")
    said = eventually(lambda: messages(kubectl, "stranger", "Unhealthy"))
    assert said[0] == (
        "Readiness probe failed: error: health rpc probe failed: "
        "rpc error: code = NotFound desc = unknown service"
    )
    health.status = 2
    kubectl("wait", "--for=condition=Ready=false", "pod/healthy", "--timeout=50s")
    said = eventually(lambda: messages(kubectl, "healthy", "Unhealthy"))
    assert said[0] == ('Readiness probe failed: service unhealthy (responded with "NOT_SERVING")')
    kubectl("delete", "pod", *pods, "--wait=false")


def test_a_probe_s_own_grace_goes_before_the_pod_s(kubectl):
    deaf = {"command": ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]}
    probe = {"exec": {"command": ["false"]}, "failureThreshold": 1,
             "terminationGracePeriodSeconds": 1}  # fmt: skip
    create(kubectl, "deaf", {**deaf, "livenessProbe": probe}, terminationGracePeriodSeconds=60)
    eventually(lambda: main(kubectl, "deaf").get("restartCount", 0) >= 1)
    assert main(kubectl, "deaf")["lastState"]["terminated"]["exitCode"] == 137
    kubectl("delete", "pod", "deaf", "--now", "--wait=false")


def test_readiness_goes_on_while_a_pod_ends(kubectl):
    """[N13, N11] so that nobody sends it requests any more"""
    quits = "touch /ready; trap 'rm /ready; sleep 4; exit' TERM; while :; do sleep 0.1; done"
    probe = {"exec": {"command": ["cat", "/ready"]}, "failureThreshold": 1}
    create(kubectl, "leaving", {"command": ["sh", "-c", quits], "readinessProbe": probe},
           terminationGracePeriodSeconds=30)  # fmt: skip
    kubectl("wait", "--for=condition=Ready", "pod/leaving", "--timeout=50s")
    kubectl("delete", "pod", "leaving", "--wait=false")
    kubectl("wait", "--for=condition=Ready=false", "pod/leaving", "--timeout=50s")
    shown = kubectl.get("pod", "leaving")
    assert "running" in shown["status"]["containerStatuses"][0]["state"]
    assert shown["metadata"]["deletionTimestamp"]
    eventually(lambda: not kubectl.exists("pod", "leaving"))
