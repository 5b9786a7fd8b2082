"""A first pod on a machine that reaches no registry: `sampan run hello`."""

import subprocess
import urllib.request

import pytest

from sampan.testing.parts.processes import eventually
from sampan.testing.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.slow, pytest.mark.containerd]


def test_hello_runs_answers_and_ends_without_any_download(cluster):
    """[C1]"""

    def sampan(*words):
        done = subprocess.run(
            sampan_command(*words), capture_output=True, text=True, timeout=120,
            env={**environment(), "KUBECONFIG": str(cluster.kubeconfig)}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert sampan("run", "hello") == "pod/hello created\n"
    try:
        sampan("wait", "--for=condition=Ready", "pod/hello", "--timeout=60s")
        address = sampan("get", "pod", "hello", "-o", "jsonpath={.status.podIP}")
        eventually(lambda: "listening" in sampan("logs", "hello"), 60.0)
        with urllib.request.urlopen(f"http://{address}:8080/", timeout=30) as answer:
            assert answer.read() == b"hello from sampan\n"
        eventually(lambda: "answered a request" in sampan("logs", "hello"), 60.0)
    finally:
        # It heeds SIGTERM: nobody waits for the end of its grace period.
        sampan("delete", "pod", "hello")
