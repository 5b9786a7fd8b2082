import os
import stat
import subprocess

import pytest

from sampan.kubelet.volumes.ownership import Walked, give_root_to_group, give_to_group

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="giving away needs root")


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "volume"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "file").write_text("x")
    os.chmod(root, 0o755)
    os.chmod(root / "deep", 0o700)
    os.chmod(root / "deep" / "file", 0o600)
    (tmp_path / "outside").write_text("x")
    os.chmod(tmp_path / "outside", 0o600)
    os.symlink("../outside", root / "link")
    return root


def seen(path):
    status = os.stat(path, follow_symlinks=False)
    return status.st_gid, stat.S_IMODE(status.st_mode)


def test_everything_in_a_volume_is_given_to_the_group(tree):
    """[N15] fsGroup: the group's rights are added, directories keep their group"""
    give_to_group(str(tree), 3000)
    assert seen(tree) == (3000, 0o2775)
    assert seen(tree / "deep") == (3000, 0o2770)
    assert seen(tree / "deep" / "file") == (3000, 0o660)


def test_a_read_only_volume_may_only_be_read(tree):
    give_to_group(str(tree), 3000, read_only=True)
    assert seen(tree / "deep") == (3000, 0o2750)
    assert seen(tree / "deep" / "file") == (3000, 0o640)


def test_what_cannot_be_given_away_stays_and_is_no_failure(tree):
    """[N15] as upstream: what nobody may write to can be used all the same"""
    mount = ["mount", "--bind", str(tree), str(tree)]
    subprocess.run(mount, check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(tree)], check=True)
        walked = Walked()
        give_to_group(str(tree), 3000, walked=walked)
    finally:
        subprocess.run(["umount", str(tree)], check=True)
    assert seen(tree / "deep" / "file") == (0, 0o600)
    assert (walked.files, walked.failures) == (4, 4)
    with pytest.raises(FileNotFoundError):
        give_to_group(str(tree / "gone"), 3000)


def test_links_are_given_away_and_not_followed(tree):
    """[N15] what a link points to is not the volume's"""
    give_to_group(str(tree), 3000)
    assert seen(tree / "link")[0] == 3000
    assert seen(tree.parent / "outside") == (0, 0o600)


def test_a_volume_that_is_right_already_is_left_alone_if_asked_for(tree):
    """[N15] fsGroupChangePolicy OnRootMismatch"""
    give_root_to_group(str(tree), 3000)
    give_to_group(str(tree), 3000, only_on_mismatch=True)
    assert seen(tree / "deep" / "file") == (0, 0o600)
    give_to_group(str(tree), 3001, only_on_mismatch=True)
    assert seen(tree / "deep" / "file") == (3001, 0o660)
