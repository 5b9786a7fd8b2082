"""Who has which volume, and what is found again on disk."""

from sampan.kubelet.csi import volume_data
from sampan.kubelet.csi.csi_volume import EPHEMERAL, CsiVolume
from sampan.kubelet.csi.users import VolumeUsers
from sampan.kubelet.csi.volume_paths import CsiPaths

DISK = CsiVolume("pv1", "d", "h")


def test_a_volume_is_idle_when_it_is_staged_and_its_last_pod_is_gone():
    users = VolumeUsers()
    users.add(DISK, "a")
    users.add(DISK, "b")
    users.stages(DISK, attachable=True)
    users.remove(DISK, "a")
    assert not users.is_idle(DISK)
    assert users.others(DISK, "b") == set()
    users.remove(DISK, "b")
    assert users.is_idle(DISK)
    assert list(users.idle()) == [DISK]
    assert users.in_use() == ("kubernetes.io/csi/d^h",)
    users.unstaged(DISK)
    assert (users.in_use(), list(users.idle())) == ((), [])


def test_what_is_staged_counts_once_the_driver_said_so():
    users = VolumeUsers()
    users.stages(DISK, attachable=False)
    assert not users.is_staged(DISK)
    users.staged(DISK)
    users.stages(DISK, attachable=False)  # the next pod
    assert users.is_staged(DISK)
    assert users.in_use() == ()


def test_the_next_agent_finds_everything_and_is_sure_of_nothing(tmp_path):
    paths = CsiPaths(str(tmp_path))
    block = CsiVolume("pv2", "d", "h2", block=True)
    inline = CsiVolume("v", "e", "csi-1", mode=EPHEMERAL)
    for volume in (DISK, block):
        data = volume_data.stage_data(volume, attachable=volume is DISK)
        volume_data.save(paths.stage_data(volume), data)
    for volume in (DISK, block, inline):
        data = volume_data.publish_data(volume, "n", "attachment")
        volume_data.save(paths.publish_data(volume, "u1"), data)
    users = VolumeUsers()
    users.read(paths, ["u1", "u2"])
    assert sorted(users.of_pod("u1"), key=lambda item: item.name) == [DISK, block, inline]
    assert users.of_pod("u2") == []
    assert users.in_use() == ("kubernetes.io/csi/d^h",)
    assert not users.is_staged(DISK)
    for volume in (DISK, block, inline):
        users.remove(volume, "u1")
        volume_data.remove_published(paths, volume, "u1")
    assert sorted(users.idle(), key=lambda item: item.name) == [DISK, block]
    for volume in (DISK, block):
        volume_data.remove_staged(paths, volume)
    assert list(volume_data.staged(paths)) == []
    assert volume_data.published(paths, "u1") == []


def test_a_file_that_cannot_be_read_is_no_volume(tmp_path):
    (tmp_path / "vol_data.json").write_text("{")
    assert volume_data.load(str(tmp_path)) is None
