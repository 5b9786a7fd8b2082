"""--kubelet-config: a file that is wrong stops the start with its reasons."""

import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.kubelet_config import read_config, with_config
from sampan.cmd.settings import NodeChoices
from sampan.kubelet.settings import KubeletSettings

SETTINGS = KubeletSettings("n")
HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def configured(path="", directory=""):
    document = read_config(NodeChoices(config=str(path), config_dir=str(directory)))
    return with_config(SETTINGS, document, str(path))


def test_no_file_is_no_change():
    assert configured() is SETTINGS


def test_a_file_is_read(tmp_path):
    (tmp_path / "c").write_text(HEAD + "containerLogMaxFiles: 3\n")
    assert configured(tmp_path / "c").container_log_max_files == 3


def test_drop_ins_are_merged_over_it_by_name(tmp_path):
    """[N17] As upstream: maps are merged, lists replaced, null takes away."""
    (tmp_path / "c").write_text(
        HEAD + "maxPods: 1\npodPidsLimit: 9\nclusterDNS: [10.0.0.1, 10.0.0.2]\n"
        "evictionHard: {memory.available: 1Mi}\n"
    )
    for name, text in (
        ("d/20-b.conf", "maxPods: 3\nclusterDNS: [10.0.0.3]\nevictionHard: {pid.available: 10%}"),
        ("d/10-a.conf", "maxPods: 2\npodPidsLimit: null"),
        ("d/30.d/c.conf", "containerLogMaxFiles: 7"),
        ("d/90-c.yaml", "maxPods: 4"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(HEAD + text)
    found = configured(tmp_path / "c", tmp_path / "d")
    assert (found.max_pods, found.pod_pids_limit) == (3, -1)
    assert found.cluster_dns == ("10.0.0.3",)
    assert found.container_log_max_files == 7
    signals = [item.signal for item in found.eviction.thresholds]
    assert signals == ["memory.available", "pid.available"]
    assert configured("", tmp_path / "d").max_pods == 3


@pytest.mark.parametrize("text", [HEAD + "tea: 1", "{", "[]"])
def test_a_bad_file_is_named(tmp_path, text):
    (tmp_path / "c").write_text(text)
    with pytest.raises(CannotStart, match=f"--kubelet-config {tmp_path}/c:"):
        configured(tmp_path / "c")


def test_a_missing_file_or_directory_is_named():
    with pytest.raises(CannotStart, match="no such file"):
        configured("/nowhere")
    with pytest.raises(CannotStart, match="--kubelet-config-dir /nowhere: "):
        configured("", "/nowhere")
