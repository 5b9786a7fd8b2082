"""cmd/cluster/node/real_node.py: what a start loads before a node is Ready."""

import subprocess
import sys

import pytest

from sampan.cmd.cluster.node.real_node import LOADED_MEANWHILE

# Each takes as long as a tenth of a start, or longer.
SLOW = ("yaml", "numpy", "grpc", "cryptography", "pydantic", "sampan.scheduler")
# What a node has no use for that runs no containerd and pins nothing.
UNUSED = ("tarfile", "sampan.kubelet.containerd", "sampan.kubelet.resource_managers.static")


@pytest.mark.slow
def test_a_node_without_containerd_loads_no_slow_library_and_nothing_of_containerd():
    names = ["sampan.cmd.cluster.node.real_node", *(f"sampan.{name}" for name in LOADED_MEANWHILE)]
    code = f"import sys, {', '.join(names)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith((*SLOW, *UNUSED))]
