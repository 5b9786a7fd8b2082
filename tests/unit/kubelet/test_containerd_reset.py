from pathlib import Path

from sampan.kubelet.containerd_reset import mounts_below


def test_only_mounts_in_the_directory_are_found_with_their_real_names():
    table = (
        "1 0 8:1 / / rw - ext4 /dev/vda rw\n"
        "2 1 0:1 / /data/containerd/a rw - tmpfs none rw\n"
        "3 1 0:1 / /data/containerd-other/a rw - tmpfs none rw\n"
        "4 2 0:1 / /data/containerd/a/with\\040space rw - tmpfs none rw\n"
    )
    assert mounts_below(Path("/data/containerd"), table) == [
        "/data/containerd/a",
        "/data/containerd/a/with space",
    ]
