"""Drivers by name after --with."""

import pytest

from sampan.cmd.cluster.driver_process import is_driver, refuse_without_node
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import UpSettings


def test_a_file_comes_before_a_driver_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_driver("csi")
    assert not is_driver("shop.yaml")
    (tmp_path / "csi").mkdir()
    assert not is_driver("csi")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (UpSettings(runtime="simulated"), "needs a real node, not --runtime simulated"),
        (UpSettings(runtime="none"), "needs a real node, not --runtime none"),
        (UpSettings(rootless=True), "needs root"),
    ],
)
def test_a_driver_without_a_node_to_mount_on_is_refused(settings, why):
    """[H1, X6]"""
    refuse_without_node(UpSettings())
    with pytest.raises(CannotStart, match=why):
        refuse_without_node(settings)
