"""What a pod takes of the disk, measured [N18]."""

import os

from sampan.core.files.remove_tree import remove_tree
from sampan.kubelet.contracts.runtime import RuntimeFailure
from sampan.kubelet.stats import local_storage
from sampan.kubelet.stats.local_storage import measure, taken_by
from sampan.kubelet.stats.node_stats import ContainerUsage, PodUsage
from sampan.kubelet.stats.usage import Usage
from tests.support import virtual_time
from tests.support.worlds.observed_pods import UID, container

POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": UID},
    "spec": {"containers": [{"name": "main"}]},
}


class Layers:
    """As much of a runtime as is asked."""

    def __init__(self, size):
        self._size = size

    async def layer_bytes(self, container_id):
        if self._size is None:
            raise RuntimeFailure("not measured")
        return self._size


def write(path, size):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def test_a_file_with_two_names_counts_once_and_links_lead_nowhere(tmp_path):
    write(tmp_path / "v" / "file", 40_000)
    os.link(tmp_path / "v" / "file", tmp_path / "v" / "again")
    (tmp_path / "v" / "out").symlink_to("/usr")
    taken = taken_by(tmp_path / "v")
    assert 40_000 <= taken.size < 80_000
    assert taken.files == 2
    assert taken_by(tmp_path / "missing").size == 0


def test_volumes_logs_and_layers_add_up(tmp_path):
    write(tmp_path / "pods" / UID / "volumes" / "kubernetes.io~empty-dir" / "v" / "f", 8192)
    write(tmp_path / "logs" / f"default_web_{UID}" / "main" / "0.log", 4096)
    usage = PodUsage(POD, Usage(), "", 0.0, (ContainerUsage(container(), Usage()),))
    root, logs = str(tmp_path), str(tmp_path / "logs")
    found = virtual_time.run(measure(Layers(1_000_000), usage, root, logs))
    assert found.volumes == {"v": 8192}
    assert found.containers == {"main": 1_004_096}
    assert found.on_disk(POD) == 1_012_288
    assert found.inodes == 2
    found = virtual_time.run(measure(Layers(None), usage, root, logs))
    assert found.containers == {"main": 4096}


def test_directories_deeper_than_paths_are_long_hide_nothing(tmp_path):
    top = tmp_path / "v"
    top.mkdir()
    directory = os.open(top, os.O_RDONLY)
    for name in ["d" * 200] * 40:
        os.mkdir(name, dir_fd=directory)
        inner = os.open(name, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = inner
    with open("file", "wb", opener=lambda name, flags: os.open(name, flags, dir_fd=directory)) as f:
        f.write(b"x" * 400_000)
    os.close(directory)
    write(top / "other" / "file", 4000)
    try:
        taken = taken_by(top)
        assert taken.files == 40 + 1 + 2
        assert taken.size >= 404_000
    finally:
        remove_tree(top)


def test_of_a_tree_deeper_than_is_looked_at_the_rest_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(local_storage, "LONG_PATH", 4)
    monkeypatch.setattr(local_storage, "MOST_OPEN", 3)
    write(tmp_path / "v" / "/".join(["deep"] * 12) / "file", 4000)
    write(tmp_path / "v" / "z" / "file", 4000)
    assert taken_by(tmp_path / "v").files == 12 + 1 + 2
    assert len(os.listdir("/proc/self/fd")) < 100
