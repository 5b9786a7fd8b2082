"""go_to_background, in processes of their own: a test process that forks is two of them."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import os, sys
from pathlib import Path
from sampan.cmd.background import Started, go_to_background, say_ready

log = Path(sys.argv[1])
secret = os.open(sys.argv[0], os.O_RDONLY)
kept = os.open(sys.argv[0], os.O_RDONLY)
print("before", flush=True)
side = go_to_background(log, keep=[kept])
if isinstance(side, Started):
    print(side.wait())
else:
    listed = {int(fd) for fd in os.listdir("/proc/self/fd")}
    still = {fd for fd in listed if fd > 2 and os.path.exists(f"/proc/self/fd/{fd}")}
    print("open", still == {kept, side}, "leader", os.getsid(0) == os.getpid(), flush=True)
    if sys.argv[2] == "ready":
        say_ready(side)
    else:
        print("sampan: no", file=sys.stderr)
        sys.exit(1)
"""


@pytest.mark.parametrize(("end", "is_ready", "more"), [("ready", True, ""), ("fails", False, "no")])
def test_whoever_started_it_hears_how_it_went_and_what_it_printed(tmp_path, end, is_ready, more):
    (tmp_path / "log").write_text("of an earlier one\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", tmp_path / "log", end],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    first, answer = done.stdout.strip().split("\n", 1)
    assert first == "before"
    assert answer.startswith(f"({is_ready}, ")
    assert "open True leader True" in answer
    assert "of an earlier one" not in answer
    assert more in answer
