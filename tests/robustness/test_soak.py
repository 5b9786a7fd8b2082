"""The load of `make soak`, in short: each kind of it works, and nothing is left of it."""

import argparse
import os

import pytest

from tests.robustness import soak
from tests.support.parts import native_runtime
from tests.support.seed import SEED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.containerd,
    pytest.mark.skipif(
        bool(native_runtime.why_not()) or os.geteuid() != 0,
        reason=native_runtime.why_not() or "needs root",
    ),
]


def test_every_kind_of_load_comes_and_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "LOOK_SECONDS", 1.0)
    given = argparse.Namespace(seed=SEED, minutes=0.05, clients=2, runtime="native")
    samples, counted, failed = soak.soaked(tmp_path, given)
    assert failed == []
    assert samples
    assert counted.total() >= 2 * 3
    assert all(value > 0 for _, look in samples[-1:] for value in look.values())
