import os
import socket
import stat

import pytest

from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.volumes.host_path import check_host_path

WORDS = {
    "Directory": "a directory",
    "File": "a file",
    "Socket": "a socket file",
    "CharDevice": "a character device",
    "BlockDevice": "a block device",
}


@pytest.fixture
def node(tmp_path, monkeypatch):
    """One of each."""
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    (tmp_path / "Directory").mkdir()
    (tmp_path / "File").write_text("")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("Socket")
        os.symlink("/dev/null", tmp_path / "CharDevice")
        yield tmp_path


@pytest.mark.parametrize("kind", WORDS)
def test_each_type_takes_its_own_and_names_what_it_misses(node, kind):
    """[N15] bad input: every hostPath type, with the original's words"""
    for found in ("Directory", "File", "Socket", "CharDevice", "missing"):
        path = str(node / found)
        # As upstream: whatever is there and no directory is a file.
        if found == kind or (kind == "File" and found in ("Socket", "CharDevice")):
            check_host_path(path, kind)
            continue
        with pytest.raises(VolumeFailure) as caught:
            check_host_path(path, kind)
        assert str(caught.value) == f"hostPath type check failed: {path} is not {WORDS[kind]}"


def test_what_may_be_made_is_made(tmp_path):
    """[N15] DirectoryOrCreate makes its parents, FileOrCreate does not"""
    check_host_path(str(tmp_path / "a" / "b"), "DirectoryOrCreate")
    assert stat.S_IMODE(os.stat(tmp_path / "a" / "b").st_mode) == 0o755
    check_host_path(str(tmp_path / "a" / "f"), "FileOrCreate")
    assert stat.S_IMODE(os.stat(tmp_path / "a" / "f").st_mode) == 0o644
    (tmp_path / "a" / "f").write_text("kept")
    check_host_path(str(tmp_path / "a" / "f"), "FileOrCreate")
    assert (tmp_path / "a" / "f").read_text() == "kept"
    with pytest.raises(VolumeFailure, match="is not a directory"):
        check_host_path(str(tmp_path / "a" / "f"), "DirectoryOrCreate")
    with pytest.raises(VolumeFailure, match="is not a file"):
        check_host_path(str(tmp_path / "no" / "f"), "FileOrCreate")


def test_without_a_type_nothing_is_looked_at(tmp_path):
    check_host_path(str(tmp_path / "missing"), "")
