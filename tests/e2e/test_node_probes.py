"""Probes of real containers, with kubectl as the witness [N13]."""

import json

import pytest

from sampan.testing.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

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
    kubectl("wait", "--for=condition=Ready", "pod/http-ready", "--timeout=20s")
    kubectl("exec", "http-ready", "--", "rm", "/w/ready")
    kubectl("wait", "--for=condition=Ready=false", "pod/http-ready", "--timeout=20s")
    said = eventually(lambda: messages(kubectl, "http-ready", "Unhealthy"))
    assert "Readiness probe failed: HTTP probe failed with statuscode: 404" in said
    assert main(kubectl, "http-ready")["restartCount"] == 0
    kubectl("exec", "http-ready", "--", "touch", "/w/ready")
    kubectl("wait", "--for=condition=Ready", "pod/http-ready", "--timeout=20s")
    kubectl("delete", "pod", "http-ready", "--wait=false")


def test_a_command_that_fails_as_liveness_restarts_the_container(kubectl):
    probe = {"exec": {"command": ["cat", "/alive"]}, "failureThreshold": 2}
    create(kubectl, "alive", {**script("touch /alive; sleep 1.5; rm /alive"),
                              "livenessProbe": probe})  # fmt: skip
    eventually(lambda: main(kubectl, "alive").get("restartCount", 0) >= 1)
    sentence = "Container main failed liveness probe, will be restarted"
    assert sentence in messages(kubectl, "alive", "Killing")
    assert any("can't open '/alive'" in one for one in messages(kubectl, "alive", "Unhealthy"))
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
