"""The suite is the same whatever the user's working directory, home, environment and machine have.

A cluster of somebody else in ./sampan-data and below HOME, kubeconfigs and settings that lead
nowhere, a proxy that nobody serves, and a listener on the API server's usual port are planted; then
tests of each kind that has met one of them are run by a pytest of its own.
"""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sampan.client.kubeconfig import Connection
from sampan.testing.kit.kubeconfigs import kubeconfig_text

TESTS = Path(__file__).parents[1]
SAMPLE = (
    "unit/cmd/test_entry.py",
    "unit/cmd/test_main.py",
    "unit/client/test_kubeconfig.py",
    "e2e/test_testkit.py::test_a_cluster_has_controllers_a_scheduler_and_nodes",
    "e2e/test_testkit.py::test_the_plugin_reports_what_a_failed_test_left",
    "e2e/test_named_clusters.py",
    "e2e/test_mistakes.py",
)
NOWHERE = "http://127.0.0.1:9"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def plant(root: Path, port: int) -> dict[str, str]:
    """The environment of somebody who has all of it."""
    stranger = Connection(f"https://127.0.0.1:{port}", ca=b"a", certificate=b"c", key=b"k")
    home, state = root / "home", root / "home" / ".local" / "state" / "sampan" / "default"
    for directory in (root / "sampan-data", state):
        directory.mkdir(parents=True)
        (directory / "format").write_text("1\n")
        (directory / "kubeconfig").write_text(kubeconfig_text(stranger))
    (home / ".kube").mkdir()
    (home / ".kube" / "config").write_text(kubeconfig_text(stranger))
    (root / "sampan.yaml").write_text("port: nonsense\n")
    return {
        **os.environ,
        "HOME": str(home), "XDG_STATE_HOME": str(home / "elsewhere"),
        "KUBECONFIG": str(home / ".kube" / "config"), "KUBECACHEDIR": "/proc/nowhere",
        "SAMPAN_DATA_DIR": str(root / "sampan-data"), "SAMPAN_PORT": "nonsense",
        "SAMPAN_CONFIG": str(root / "sampan.yaml"), "EDITOR": "false", "NO_COLOR": "1",
        "HTTPS_PROXY": NOWHERE, "http_proxy": NOWHERE, "PYTHONWARNINGS": "error",
    }  # fmt: skip


def test_tests_do_not_depend_on_what_is_around_them(tmp_path):
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        with contextlib.suppress(OSError):  # somebody has it already, which is as good
            stack.enter_context(socket.create_server(("127.0.0.1", 6443)))
        environment = plant(tmp_path, listener.getsockname()[1])
        command = [sys.executable, "-m", "pytest", "--import-mode=importlib", "-q", "-n", "2"]
        command += ["-p", "no:cacheprovider", *(str(TESTS / name) for name in SAMPLE)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
