import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sampan.core.mounts import mounts_below, unmount_below
from sampan.kubelet.contracts.volumes_hook import MountedVolume, VolumeFailure
from sampan.kubelet.volumes.payload import File
from sampan.kubelet.volumes.plan import Directory, Files, HostPath, LocalPath
from sampan.kubelet.volumes.set_up import set_up, tear_down
from sampan.kubelet.volumes.sub_path import bind_sub_path

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")


@pytest.fixture
def pod(tmp_path):
    yield tmp_path / "pods" / "u1"
    if os.getuid() == 0:
        unmount_below(str(tmp_path))


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_directory_is_for_everybody_and_the_way_to_it_for_nobody(pod):
    """[N15] emptyDir"""
    path = pod / "volumes" / "e"
    assert set_up(Directory("e", str(path)), 0.0) == MountedVolume(str(path), relabel=True)
    assert mode(path) == 0o777
    assert mode(pod) == mode(pod.parent) == 0o750
    (path / "file").write_text("kept")
    set_up(Directory("e", str(path)), 0.0)
    assert (path / "file").read_text() == "kept"


def test_the_first_pods_of_a_node_make_the_way_to_their_volumes_at_once(tmp_path):
    """[N15] whoever comes second finds what the first has made"""
    with ThreadPoolExecutor(8) as threads:
        for round_ in range(40):
            begin = threading.Barrier(8)

            def make(number, begin=begin, round_=round_):
                begin.wait()
                path = tmp_path / f"{round_}" / "pods" / f"u{number}" / "volumes" / "e"
                set_up(Directory("e", str(path)), 0.0)

            list(threads.map(make, range(8)))


@needs_root
def test_memory_is_bounded_and_kept_when_set_up_again(pod):
    """[N15] emptyDir in memory; a restarted agent finds it and does not mount it again"""
    path = pod / "volumes" / "m"
    step = Directory("m", str(path), in_memory=True, size_bytes=1 << 20, group=3000)
    set_up(step, 0.0)
    assert (os.stat(path).st_gid, mode(path)) == (3000, 0o3777)
    (path / "file").write_text("kept")
    set_up(step, 0.0)
    assert mounts_below(str(pod)) == [str(path)]
    assert (path / "file").read_text() == "kept"
    with pytest.raises(OSError, match="No space left"):
        (path / "large").write_bytes(bytes(2 << 20))


@needs_root
def test_a_directory_is_shared_once(pod):
    """[N15] mountPropagation; also after everything was unmounted, as by a stop of the cluster"""
    for memory in (False, True):
        path = pod / "volumes" / f"{memory}"
        step = Directory("e", str(path), in_memory=memory, shared=True)
        for _ in range(2):
            set_up(step, 0.0)
            set_up(step, 0.0)
            assert len(mounts_below(str(path))) == (2 if memory else 1)
            unmount_below(str(pod))


@needs_root
def test_files_belong_to_the_group_and_cannot_be_written(pod):
    """[N15] fsGroup on secrets: readable by the group, nothing more"""
    path = pod / "volumes" / "s"
    files = {"token": File(b"x", 0o600, owner=7)}
    step = Files("s", str(path), True, files, group=3000)
    assert set_up(step, 0.0) == MountedVolume(str(path), read_only=True, relabel=True)
    status = os.stat(path / "token")
    assert (status.st_uid, status.st_gid, mode(path / "token")) == (7, 3000, 0o640)
    set_up(step, 0.0)
    assert mounts_below(str(pod)) == [str(path)]


def test_what_fails_names_the_volume(pod):
    with pytest.raises(VolumeFailure) as caught:
        set_up(HostPath("h", "/no/such", "Directory"), 0.0)
    assert str(caught.value) == (
        'MountVolume.SetUp failed for volume "h" : '
        "hostPath type check failed: /no/such is not a directory"
    )
    with pytest.raises(VolumeFailure, match='path "/no/such" does not exist'):
        set_up(LocalPath("l", "/no/such"), 0.0)


@needs_root
def test_tearing_down_removes_the_pod_s_own_and_nothing_else(pod, tmp_path):
    """[N15] never into a hostPath: neither through a mount nor through a link"""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("kept")
    empty = pod / "volumes" / "kubernetes.io~empty-dir" / "e"
    set_up(Directory("e", str(empty)), 0.0)
    set_up(Directory("m", str(empty.parent / "m"), in_memory=True), 0.0)
    os.symlink(precious, empty / "link")
    bind_sub_path(str(precious), ".", str(pod / "volume-subpaths" / "h" / "c" / "0"))
    bind_sub_path(str(precious), "data", str(pod / "volume-subpaths" / "h" / "c" / "1"))
    (pod / "etc-hosts").write_text("")
    tear_down(str(pod), whole=False)
    assert os.listdir(pod) == ["etc-hosts"]
    tear_down(str(pod), whole=True)
    assert not pod.exists()
    assert (precious / "data").read_text() == "kept"
    assert mounts_below(str(tmp_path)) == []
    tear_down(str(pod), whole=True)
