"""Bandwidth limits by annotation reach the pod's own interface [N8]."""

import secrets
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.parts.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, annotations: {LIMITS}}
spec:
  hostNetwork: HOST
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: localhost/test/busybox:1, command: [sh, -c, "sleep 1000; : WORD"]}
"""
INGRESS, EGRESS = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"


def pod(name, limits, host="false", word=""):
    written = POD.replace("NAME", name).replace("LIMITS", limits).replace("HOST", host)
    return written.replace("WORD", word)


def process_with(word):
    """The pid of the container whose command has it."""
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                arguments = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if arguments[:1] == [b"sh"] and word.encode() in arguments[2]:
                return int(place.name)
    return 0


def shapers(*where):
    command = [*where, "tc", "qdisc"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not shutil.which("tc"), reason="tc tells what limits there are")
def test_a_pod_is_limited_both_ways_and_on_the_host_s_network_that_is_refused(kubectl):
    both, word = f"{INGRESS}: 13M, {EGRESS}: 7M", secrets.token_hex(8)
    kubectl.apply(pod("limited", both, word=word))
    kubectl.apply(pod("unlimited", both, host="true"))
    kubectl.apply(pod("wrong", f"{EGRESS}: '13'"))
    kubectl("wait", "--for=condition=Ready", "pod/limited", "pod/unlimited", "--timeout=60s")
    assert "rate 13Mbit" in shapers()
    assert "rate 7Mbit" in shapers("nsenter", f"--net=/proc/{process_with(word)}/ns/net")
    events = "get", "events", "-o", "jsonpath={range .items[*]}{.reason} {.message}{'\\n'}{end}"
    eventually(lambda: "HostNetworkNotSupported" in kubectl(*events))
    wrong = ["FailedCreatePodSandBox ", "resource is unreasonably small (< 1kbit)"]
    eventually(lambda: any(all(part in line for part in wrong)
                           for line in kubectl(*events).splitlines()), 60)  # fmt: skip
    kubectl("delete", "pod", "limited", "unlimited", "wrong", "--force", "--grace-period=0")
