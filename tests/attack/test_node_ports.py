"""Services and host ports that claim what a node's own programs listen for."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.parts.machines import machines
from tests.support.parts.sampan_process import environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]


def test_no_service_and_no_host_port_leads_away_from_who_listens_on_the_node(tmp_path):
    with machines(2) as [node, outside]:
        done = subprocess.run(
            [*node.where, sys.executable, "-m", "tests.support.parts.hostile_services",
             str(tmp_path / "d"), node.address, outside.namespace],
            capture_output=True, text=True, timeout=240, env=environment(), check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        found = json.loads(done.stdout)
        assert found["wrong"] == []
        assert found["asked"] > 40
        assert found["reached"] >= 8, "what nobody listens for leads to the pod: the test can fail"
