"""cmd/cluster/process.py: what the garbage collector is told of a process that stays."""

import subprocess
import sys

import pytest

SCRIPT = """
import gc
from sampan.cmd.cluster.process import settle_memory

class Node:
    pass

settle_memory()
frozen = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
lost = Node()
lost.itself = lost
del lost
found = gc.collect(2)
print(found > 0, gc.get_freeze_count() - frozen >= 1000, gc.isenabled())
"""


@pytest.mark.slow
def test_what_outlived_a_search_is_not_searched_again_and_garbage_goes():
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["True"] * 3
