import os

import pytest

from sampan.core import mounts

INFO = r"""22 27 0:21 / /proc rw - proc proc rw
30 27 0:40 / /data/a\040b/x rw shared:1 - tmpfs tmpfs rw
31 27 0:41 / /data/a\040b rw - tmpfs tmpfs rw
32 27 0:42 / /data/a\040bc rw - tmpfs tmpfs rw
"""
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")


def test_mounts_are_found_by_their_place():
    assert mounts.mounts_below("/data/a b", INFO) == ["/data/a b/x", "/data/a b"]
    assert mounts.mounts_below("/data/a", INFO) == []


@needs_root
def test_everything_below_a_directory_is_unmounted(tmp_path):
    outer, inner = tmp_path / "with space", tmp_path / "with space" / "in"
    outer.mkdir()
    mounts.mount_tmpfs(str(outer), 1 << 20)
    inner.mkdir()
    mounts.mount_tmpfs(str(inner))
    mounts.mount_tmpfs(str(inner))
    assert os.statvfs(outer).f_blocks * os.statvfs(outer).f_frsize == 1 << 20
    mounts.unmount_below(str(tmp_path))
    assert mounts.mounts_below(str(tmp_path)) == []
    assert not inner.exists()


@needs_root
def test_a_link_is_never_unmounted_through(tmp_path):
    (tmp_path / "real").mkdir()
    mounts.mount_tmpfs(str(tmp_path / "real"))
    try:
        os.symlink("real", tmp_path / "link")
        assert not mounts.unmount(str(tmp_path / "link"))
        assert os.path.ismount(tmp_path / "real")
    finally:
        mounts.unmount_below(str(tmp_path))
    assert not mounts.unmount(str(tmp_path / "missing"))


@needs_root
def test_a_shared_directory_is_one(tmp_path):
    """[N15] mountPropagation also where the node's own mounts are private"""
    assert not mounts.is_shared(str(tmp_path))
    mounts.share(str(tmp_path))
    try:
        assert mounts.is_shared(str(tmp_path))
    finally:
        mounts.unmount_below(str(tmp_path))


@needs_root
def test_a_mount_that_fails_says_where(tmp_path):
    with pytest.raises(OSError, match="No such file or directory") as caught:
        mounts.mount_tmpfs(str(tmp_path / "missing"))
    assert caught.value.filename == str(tmp_path / "missing")
