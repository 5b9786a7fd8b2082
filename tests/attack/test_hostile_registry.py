"""A registry that sends the node's client to the node itself."""

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


def test_nothing_that_listens_on_the_node_is_asked_for_who_is_elsewhere():
    with machines(1) as [machine]:
        machine.run("ip", "link", "set", "lo", "up")
        done = subprocess.run(
            [*machine.where, sys.executable, "-m", "tests.support.parts.hostile_registry",
             machine.address],
            capture_output=True, text=True, timeout=240, env=environment(), check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        found = json.loads(done.stdout)
        assert found["asked"] == []
        assert found["refused"] == found["of"] > 40
