import ctypes
import os
import stat
import threading

import pytest

from sampan.core.mounts import mounts_below, unmount_all
from sampan.kubelet.contracts.volumes_hook import SubPathFailure
from sampan.kubelet.volumes.sub_path import bind_sub_path, opened_beneath, read_beneath

RENAME_EXCHANGE = 2
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")


@pytest.fixture
def world(tmp_path):
    """A volume, and something outside of it that nobody in the volume may reach."""
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    (volume / "a" / "b").mkdir(parents=True)
    (volume / "a" / "file").write_text("inside")
    outside.mkdir()
    (outside / "secret").write_text("outside")
    return volume


def inode(path):
    return os.stat(path).st_ino


def reached(volume, sub_path):
    with opened_beneath(str(volume), sub_path) as descriptor:
        return os.fstat(descriptor).st_ino


def test_what_is_in_the_volume_is_found(world):
    """[N15] subPath: files, directories, links that stay inside"""
    os.symlink("../a/./file", world / "a" / "link")
    os.symlink("a", world / "other")
    for path, target in [
        ("a/b", "a/b"), ("a//b/", "a/b"), ("./a", "a"), ("a/file", "a/file"),
        ("a/link", "a/file"), ("other/link", "a/file"),
    ]:  # fmt: skip
        assert reached(world, path) == inode(world / target), path


def test_a_file_of_a_config_map_is_found_through_its_links(world):
    (world / "..2026").mkdir()
    (world / "..2026" / "word").write_text("hello")
    os.symlink("..2026", world / "..data")
    os.symlink("..data/word", world / "word")
    assert reached(world, "word") == inode(world / "..2026" / "word")


def test_an_absolute_link_of_the_node_that_leads_back_inside_is_followed(world):
    """[N15] as upstream; by whatever name the volume goes, and never out again"""
    os.symlink(world / "a" / "file", world / "absolute")
    os.symlink(world, world / "a" / "top")
    alias = world.parent / "alias"
    os.symlink(world, alias)
    os.symlink(alias / "a" / "b", world / "by-alias")
    assert reached(world, "absolute") == inode(world / "a" / "file")
    assert reached(world, "a/top/a/b") == inode(world / "a" / "b")
    assert reached(alias, "by-alias") == inode(world / "a" / "b")
    for number, target in enumerate((f"{world}/../outside", f"{world}x", f"{world.parent}")):
        os.symlink(target, world / f"out-{number}")
        with pytest.raises(SubPathFailure):
            reached(world, f"out-{number}")


@pytest.mark.parametrize(
    "target", ["../outside", "/", "../volume/../outside", "loop", "a/../../outside/secret"]
)
def test_a_link_that_leads_out_is_refused(world, target):
    """[N15] bad input: symlink escapes"""
    os.symlink(target, world / "loop")
    for path in ("loop", "loop/secret", "a/../loop"):
        with pytest.raises(SubPathFailure):
            reached(world, path)
    assert sorted(os.listdir(world.parent / "outside")) == ["secret"]


@pytest.mark.parametrize("path", ["..", "../outside", "a/../..", "a/b/../../../outside", "/etc"])
def test_no_path_of_our_own_leads_out_either(world, path):
    """[N15] bad input: `..` and absolute paths"""
    with pytest.raises(SubPathFailure):
        reached(world, path)


def test_missing_directories_are_made_like_the_volume(world):
    """[N15] with its mode, whatever the umask is"""
    os.chmod(world, 0o2775)
    before = os.umask(0o077)
    try:
        reached(world, "a/new/deep")
    finally:
        os.umask(before)
    for path in ("a/new", "a/new/deep"):
        assert stat.S_IMODE(os.stat(world / path).st_mode) == 0o2775


def test_nothing_is_made_below_a_file(world):
    with pytest.raises(OSError, match="Not a directory"):
        reached(world, "a/file/x")


def test_a_directory_that_is_exchanged_for_a_link_meanwhile_is_never_followed(world):
    """[N15] the race: check one thing, use another"""
    stop = threading.Event()
    os.symlink("../outside", world / "trap")

    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open(world, os.O_RDONLY)

    def exchange():
        while not stop.is_set():
            assert libc.renameat2(here, b"a", here, b"trap", RENAME_EXCHANGE) == 0

    attacker = threading.Thread(target=exchange)
    attacker.start()
    forbidden = {inode(world.parent / "outside"), inode(world.parent / "outside" / "secret")}
    seen, refused = set(), 0
    try:
        for _ in range(2000):
            try:
                seen.add(reached(world, "a/secret"))
            except (SubPathFailure, OSError):
                refused += 1
    finally:
        stop.set()
        attacker.join()
        os.close(here)
    assert seen
    assert refused
    assert not seen & forbidden
    assert sorted(os.listdir(world.parent / "outside")) == ["secret"]


@needs_root
def test_what_was_found_is_bound_and_stays_what_it_is(world):
    """[N15] a link that is changed afterwards changes nothing"""
    target = world.parent / "pod" / "0"
    os.symlink("a", world / "link")
    try:
        bind_sub_path(str(world), "link", str(target))
        assert inode(target) == inode(world / "a")
        os.unlink(world / "link")
        os.symlink("../outside", world / "link")
        assert sorted(os.listdir(target)) == ["b", "file"]
        bind_sub_path(str(world), "a", str(target))
        assert len(mounts_below(str(target))) == 1  # it was right already
        bind_sub_path(str(world), "a/file", str(target))  # the next container wants another
        assert target.read_text() == "inside"
        with pytest.raises(SubPathFailure):
            bind_sub_path(str(world), "link", str(target))
    finally:
        unmount_all(str(target))
    assert mounts_below(str(world.parent)) == []


def test_a_file_is_read_without_leaving_the_volume(world):
    os.symlink("file", world / "a" / "link")
    os.symlink("../../outside/secret", world / "a" / "out")
    assert read_beneath(str(world), "a/link", 100) == b"inside"
    for path, failure in [
        ("a/out", SubPathFailure), ("../outside/secret", SubPathFailure), ("a", SubPathFailure),
        ("a/none", FileNotFoundError), ("none/none", FileNotFoundError),
    ]:  # fmt: skip
        with pytest.raises(failure):
            read_beneath(str(world), path, 100)
    with pytest.raises(SubPathFailure, match="too long"):
        read_beneath(str(world), "a/file", 5)
    assert not (world / "none").exists()
