"""The examples work, and their tests pass as a user runs them."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_the_tests_of_all_examples_pass():
    installed = [entry.name for entry in entry_points(group="pytest11") if entry.name == "sampan"]
    plugin = [] if installed else ["-p", "sampan.testing.pytest_plugin"]
    done = subprocess.run(
        # As examples/README.md says it; without what only the tests of sampan itself need.
        [sys.executable, "-m", "pytest", "examples", "-q", *plugin, "-p", "no:cacheprovider",
         "-p", "no:timeout", "-p", "no:xdist"],
        cwd=ROOT, capture_output=True, text=True, timeout=280, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 passed" in done.stdout
