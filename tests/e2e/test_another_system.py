"""Where there is no Linux: the control plane, simulated nodes, the test kit and the client work.

Each process is a Python without what only Linux has (another_system/sitecustomize.py).
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.parts.sampan_process import environment, sampan_command
from tests.support.places import SOURCES

pytestmark = [pytest.mark.slow]
HERE = Path(__file__).parent / "another_system"
LOOK = """
import os, select, socket
for name in (os, "pidfd_open"), (os, "O_PATH"), (select, "epoll"), (socket, "AF_NETLINK"):
    print(hasattr(*name))
print(os.path.exists("/proc/self"))
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: nginx}]}
"""


@pytest.fixture
def run(tmp_path):
    """A program of that system, which has none of Linux' beside it."""
    surroundings = {
        **environment(), "PYTHONPATH": f"{HERE}{os.pathsep}{SOURCES}", "PATH": str(tmp_path),
        "HOME": str(tmp_path), "XDG_STATE_HOME": "", "KUBECONFIG": "",
    }  # fmt: skip

    def run(*command, code=0, given=""):
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=120, cwd=tmp_path,
            env=surroundings,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_the_test_kit_works(run):
    plugin = ("-p", "no:cacheprovider", "--noconftest", "-c", os.devnull)
    command = (sys.executable, "-m", "pytest", "-q", *plugin, str(HERE / "story_of_the_kit.py"))
    assert "2 passed" in run(*command)


def test_a_cluster_starts_on_simulated_nodes_is_used_and_goes(run):
    def sampan(*words, **more):
        return run(*sampan_command(*words), **more)

    begun = sampan("up", "--detach", "--use", "--port", "0")
    try:
        assert "no real node: it needs Linux" in begun
        assert "simulated" in begun
        sampan("apply", "-f", "-", given=POD)
        sampan("wait", "--for=condition=Ready", "pod/web")
        assert "Running" in sampan("get", "pods")
        assert "1 of 1 ready" in sampan("status")
        assert "process_cpu_seconds_total" in sampan("get", "--raw", "/metrics")
        assert '"platform": "darwin/arm64"' in sampan("get", "--raw", "/version")
        examined = sampan("doctor")
        assert "real containers need Linux" in examined
        assert "Darwin" in examined
        assert "stopped process" in sampan("down")
        assert "a real node needs Linux" in sampan("up", "--runtime", "native", code=1)
    finally:
        assert "removed" in sampan("reset", "--yes")


def test_what_needs_linux_says_so(run):
    """And nothing of Linux was there for the tests above."""
    assert run(sys.executable, "-c", LOOK).split() == ["False"] * 5
    said = run(*sampan_command("kubelet", "--manifests", "."), code=1)
    assert "a real node needs Linux" in said
