"""The short form of `make campaign`, and its parts by themselves."""

import random
import subprocess
import sys

import pytest

from sampan.core.clock import SystemClock
from tests.robustness.fault_campaign import Round, played
from tests.robustness.fault_layer import FaultLayer, can_be_built
from tests.robustness.faults import WORLD, drawn, kinds_of
from tests.support.seed import SEED

SECONDS = 5.0
CLOCK = SystemClock()
slow = pytest.mark.slow


@slow
@pytest.mark.timeout(600)
def test_overlapping_faults_leave_a_history_that_can_have_happened(tmp_path):
    judged = played(tmp_path, Round(SEED, SECONDS))
    assert judged.violations == []
    assert judged.undecided == 0
    assert judged.faults.total() > 0
    assert judged.keys > 0


class Everything:
    layer, members, runtime, is_real = object(), [], "native", True


def test_one_seed_is_one_story():
    def story(seed):
        rng = random.Random(seed)
        return [drawn(rng, kinds_of(Everything)) for _ in range(200)]

    assert story(1) == story(1) != story(2)
    assert {fault.kind for fault, _ in story(1)} == set(kinds_of(Everything))
    assert ("kill", WORLD) in {(fault.kind, fault.target) for fault, _ in story(1)}


CHILD = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for line in sys.stdin:
    found = []
    for work in (lambda: os.write(file, b"x"), lambda: os.fsync(file), lambda: os.fdatasync(file)):
        try:
            work()
            found.append(0)
        except OSError as error:
            found.append(error.errno)
    print(*found, int(time.time()), flush=True)
"""


@slow
@pytest.mark.skipif(not can_be_built(), reason="no C compiler here")
def test_the_layer_fails_what_it_is_told_to_and_nothing_else(tmp_path):
    (tmp_path / "below").mkdir()
    layer = FaultLayer(tmp_path, tmp_path / "below")
    children = [
        subprocess.Popen(
            [*layer.where, sys.executable, "-c", CHILD, tmp_path / place],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for place in ("below/file", "beside")
    ]  # fmt: skip

    def asked():
        for child in children:
            child.stdin.write("\n")
            child.stdin.flush()
        return [[int(word) for word in child.stdout.readline().split()] for child in children]

    try:
        assert [found[:3] for found in asked()] == [[0, 0, 0], [0, 0, 0]]
        layer.fail_syncs(True)
        assert [found[:3] for found in asked()] == [[0, 5, 5], [0, 0, 0]]
        layer.fail_syncs(False)
        layer.fill(True)
        layer.jump(3600)
        mine, other = asked()
        assert (mine[:3], other[:3]) == ([28, 0, 0], [0, 0, 0])
        assert mine[3] - CLOCK.now() > 3500
        layer.fill(False)
        layer.jump(0)
        layer.delay_syncs(50)
        began = CLOCK.monotonic()
        assert [found[:3] for found in asked()] == [[0, 0, 0], [0, 0, 0]]
        assert CLOCK.monotonic() - began >= 0.1
    finally:
        for child in children:
            child.stdin.close()
            child.wait(10)
            child.stdout.close()
