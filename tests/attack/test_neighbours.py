"""Pods that share a node's bridge: what one of them writes on its wire [network]."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.parts.machines import machines
from tests.support.parts.sampan_process import environment
from tests.support.seed import SEED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]
FRAMES = int(os.environ.get("SAMPAN_REQUESTS", "2000"))


@pytest.mark.parametrize("bridges_ask", ["1", "0"])
@pytest.mark.parametrize("family", ["ip", "ip6", "both"])
def test_a_pod_is_heard_as_itself_or_not_at_all(tmp_path, family, bridges_ask):
    with machines(1) as [machine]:
        for each in ("iptables", "ip6tables"):
            machine.run("sysctl", "-qw", f"net.bridge.bridge-nf-call-{each}={bridges_ask}")
        done = subprocess.run(
            [*machine.where, sys.executable, "-m", "tests.support.parts.hostile_neighbour",
             str(tmp_path / "d"), family, str(SEED), str(FRAMES)],
            capture_output=True, text=True, timeout=540, env=environment(), check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        found = json.loads(done.stdout)
        print(f"{family}: {found['sent']} frames")
        assert found["sent"] > FRAMES
        assert found["heard"] == [], "the victim hears the other only"
        assert found["overheard"] == [], "and nobody reads what is for others"
        assert all(found["answered"]), "the other is heard: the test can fail"
        assert all(found["reached"])
        assert found["neighbours"] == []
        assert found["gateway"] == []


def test_nobody_but_a_node_writes_into_the_tunnel_and_that_for_its_own_pods(tmp_path):
    with machines(3) as [node, other, stranger]:
        done = subprocess.run(
            [*node.where, sys.executable, "-m", "tests.support.parts.hostile_tunnel",
             str(tmp_path / "d"), node.address, other.address, other.namespace,
             stranger.namespace],
            capture_output=True, text=True, timeout=180, env=environment(), check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        found = json.loads(done.stdout)
        assert found["good"], "what another node's pod says comes through: the test can fail"
        assert found["wrong"] == []
        assert found["tried"] > 20
        assert not found["passed on"], "a pod's packet has the node's address elsewhere"
