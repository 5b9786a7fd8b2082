"""--kubelet-config: a file that is wrong stops the start with its reasons."""

import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.kubelet_config import with_config
from sampan.kubelet.settings import KubeletSettings

SETTINGS = KubeletSettings("n")
HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def test_no_file_is_no_change():
    assert with_config(SETTINGS, "") is SETTINGS


def test_a_file_is_read(tmp_path):
    (tmp_path / "c").write_text(HEAD + "containerLogMaxFiles: 3\n")
    assert with_config(SETTINGS, str(tmp_path / "c")).container_log_max_files == 3


@pytest.mark.parametrize("text", [HEAD + "tea: 1", "{", "[]"])
def test_a_bad_file_is_named(tmp_path, text):
    (tmp_path / "c").write_text(text)
    with pytest.raises(CannotStart, match=f"--kubelet-config {tmp_path}/c:"):
        with_config(SETTINGS, str(tmp_path / "c"))


def test_a_missing_file_is_named():
    with pytest.raises(CannotStart, match="no such file"):
        with_config(SETTINGS, "/nowhere")
