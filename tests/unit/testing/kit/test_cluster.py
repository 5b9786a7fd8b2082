"""testing/kit/cluster.py: what a test's own process loads of the kit."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_kit_brings_no_event_loop_and_no_cluster_into_the_tests_process():
    code = "import sys, sampan.testing.kit.cluster; print(*sys.modules)"
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "sampan.testing.kit.cluster" in loaded
    assert not loaded & {"asyncio", "cryptography", "numpy", "grpc", "argparse", "logging"}
    assert sum(name.startswith("sampan.") for name in loaded) <= 70
