"""`sampan trace` of pods with real containers [X1]: each step is seen as what it is."""

import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from sampan.testing.parts.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.slow]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: traced}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: first, image: localhost/test/busybox:1, command: [sh, -c, "exit 0"]}
  containers:
  - name: main
    image: localhost/test/busybox:1
    command: [sleep, "3600"]
    lifecycle: {postStart: {exec: {command: [sh, -c, "exit 0"]}}}
"""


@pytest.fixture
def trace(cluster):
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}

    def run(*words, code=0):
        command = [sys.executable, "-m", "sampan", "trace", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


def test_a_pod_with_an_init_container_and_a_hook(kubectl, trace):
    kubectl("apply", "-f", "-", stdin=POD)
    try:
        kubectl("wait", "--for=condition=Ready", "pod/traced", "--timeout=60s")
        names = [span["name"] for span in json.loads(trace("traced", "-o", "json"))["spans"]]
        expected = [
            "create pods", "filter and score", "bind", "sandbox and network", "create first",
            "start first", "create main", "start main", "postStart hook of main",
        ]  # fmt: skip
        assert [name for name in names if name in expected] == expected
        text = trace("pod/traced")
        assert text.startswith("pod/traced: create → Running in ")
        assert "sandbox and network" in text
        ElementTree.fromstring(trace("traced", "-o", "svg"))
        events = json.loads(trace("traced", "-o", "perfetto"))["traceEvents"]
        assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {
            "apiserver",
            "scheduler",
            "kubelet",
        }
    finally:
        kubectl("delete", "pod", "traced", "--now")
    ended = [span["name"] for span in json.loads(trace("traced", "-o", "json"))["spans"]]
    assert {"terminating pod", "delete pods"} <= set(ended)


def test_a_pod_that_never_starts_says_where_it_stopped(kubectl, trace):
    kubectl("run", "homeless", "--image=localhost/test/busybox:1",
            "--overrides", json.dumps({"spec": {"nodeSelector": {"no": "such"}}}))  # fmt: skip
    try:
        eventually(lambda: "refused by" in trace("homeless", "-o", "json"))
        text = trace("homeless")
        assert text.startswith("pod/homeless: Pending ")
        assert "filter and score (" in text  # and which rule refused it
    finally:
        kubectl("delete", "pod", "homeless", "--now")


def test_who_asks_for_what_is_not_there_is_told_so(trace):
    assert "no trace of pod default/never-was" in trace("never-was", code=1)
    assert "write pod/NAME or deploy/NAME" in trace("service/x", code=2)


def test_a_rollout_is_seen_on_one_axis(kubectl, trace):
    kubectl("create", "deployment", "fleet", "--image=localhost/test/busybox:1", "--replicas=2",
            "--", "sleep", "3600")  # fmt: skip
    try:
        kubectl("rollout", "status", "deployment/fleet", "--timeout=120s")
        text = trace("deploy/fleet")
        assert text.startswith("deployment/fleet: 2 pods in ")
        assert len([line for line in text.splitlines() if line.startswith("fleet-")]) == 2
    finally:
        kubectl("delete", "deployment", "fleet", "--now")
