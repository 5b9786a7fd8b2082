"""Files as block devices."""

import os

import pytest

from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.verbs import reset
from sampan.drivers.csi import loop_devices

pytestmark = pytest.mark.skipif(
    os.getuid() != 0 or not os.path.exists("/dev/loop-control"), reason="needs loop devices"
)


@pytest.fixture
def data(tmp_path):
    made = DataDir(tmp_path / "data")
    (made.csi / "volumes").mkdir(parents=True)
    return made


def attached(place, name):
    file = place / "volumes" / name
    file.write_bytes(bytes(1 << 20))
    return str(file), loop_devices.attach(str(file))


def test_a_file_has_one_device_until_it_is_let_go(data):
    """[H1]"""
    file, device = attached(data.csi, "one")
    assert loop_devices.attach(file) == device == loop_devices.find(file)
    assert loop_devices.find_below(str(data.csi)) == [file]
    assert loop_devices.find_below(f"{data.root}/cs") == []
    loop_devices.detach(file)
    assert loop_devices.find(file) is None
    loop_devices.detach(file)


@pytest.mark.slow
def test_a_reset_lets_devices_go_that_nobody_else_could(data):
    attached(data.csi, "one")
    reset.remove(data)
    assert not data.root.exists()
    assert loop_devices.find_below(str(data.csi)) == []
