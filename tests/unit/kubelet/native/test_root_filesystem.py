"""A container's root where the kernel has no overlay for root of a user namespace."""

import os
import shutil
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("fuse-overlayfs"), reason="no fuse-overlayfs"),
    pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="no /dev/fuse"),
]
# The kernel's own refusal cannot be had here: `mount` is another for this one process.
STORY = """
import errno, os, shutil, sys
from pathlib import Path
from sampan.kubelet.native import root_filesystem
def refuse(*_):
    raise OSError(errno.EPERM, "Operation not permitted")
root_filesystem.mount = refuse
place = Path(sys.argv[1])
root = root_filesystem.mount_root(place / "container", [place / "low", place / "high"])
assert sorted(os.listdir(root)) == ["both", "low-only"], os.listdir(root)
assert (root / "both").read_text() == "high"
(root / "new").write_text("new")
(root / "both").unlink()
shutil.rmtree(root / "low-only")
(root / "low-only").mkdir()
assert sorted(os.listdir(root)) == ["low-only", "new"]
assert os.listdir(root / "low-only") == []
assert root_filesystem.written_above(place / "container").inodes >= 3
root_filesystem.unmount_root(place / "container")
assert os.listdir(root) == []
"""


def test_fuse_overlayfs_takes_the_place_of_the_kernel_s_overlay(tmp_path):
    for layer in ("low", "high"):
        (tmp_path / layer).mkdir()
        (tmp_path / layer / "both").write_text(layer)
    (tmp_path / "low" / "low-only").mkdir()
    (tmp_path / "low" / "low-only" / "file").write_text("hidden later")
    (tmp_path / "container").mkdir()
    inside = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]
    if subprocess.run([*inside, "true"], check=False).returncode != 0:
        pytest.skip("no user namespaces")
    command = [*inside, sys.executable, "-c", STORY, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "low" / "both").read_text() == "low"
