"""`make bench AGAINST=KUBECONFIG`: two columns, of this sampan and of another cluster. [F21]"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.parts.sampan_process import SampanProcess, environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_the_same_workloads_run_on_another_cluster_and_leave_nothing_there(tmp_path):
    other = SampanProcess(tmp_path, "--runtime", "simulated").up()
    try:
        command = [
            sys.executable, "-m", "tests.bench.against", str(other.kubeconfig),
            "--runtime", "simulated", "--rounds", "2", "--pods", "5", "--maps", "20",
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=200, env=environment(),
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        head, *rows = done.stdout.splitlines()
        assert head.split() == ["this", "sampan", "the", "other", "ratio"]
        told = {row[:36].strip(): [float(word) for word in row[36:].split()] for row in rows}
        assert {
            "create→Running p50, ms",
            "5 pods create→Running, s",
            "Deployment of 5 available, s",
            "20 ConfigMaps created, /s",
            "list of 20 p50, ms",
            "write→seen by a watch p50, ms",
        } <= set(told)
        assert all(len(row) == 3 and min(row) > 0 for row in told.values()), told
        kubectl = other.kubectl
        names = kubectl("get", "namespaces", "-o", "name").split()
        for name in names:
            if "sampan-bench-" in name:
                kubectl("wait", "--for=delete", name, "--timeout=60s")
    finally:
        other.stop()
