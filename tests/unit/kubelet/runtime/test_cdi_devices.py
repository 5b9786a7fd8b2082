"""CDI devices in CRI's words."""

import pytest

from sampan.kubelet.contracts.runtime import ContainerSpec, Device, Mount, RuntimeFailure
from sampan.kubelet.runtime import cdi_devices
from sampan.runtime import cdi


def expanded(monkeypatch, edits):
    found = cdi.CdiDevices({"x/y=z": [edits]})
    monkeypatch.setattr(cdi, "read", lambda: found)
    spec = ContainerSpec("c", 0, "i", "i", env=(("A", "1"),), cdi_devices=("x/y=z",))
    return cdi_devices.with_cdi_devices(spec)


def test_environment_mounts_devices_and_groups_are_told(monkeypatch):
    made = expanded(monkeypatch, {
        "env": ["B=2"],
        "mounts": [{"hostPath": "/h", "containerPath": "/c", "options": ["rw", "rslave"]}],
        "deviceNodes": [{"path": "/dev/x", "hostPath": "/dev/null", "permissions": "r"}],
        "additionalGids": [7],
    })  # fmt: skip
    assert made.env == (("A", "1"), ("B", "2"))
    assert made.mounts == (Mount("/c", "/h", propagation="host_to_container"),)
    assert made.devices == (Device("/dev/x", "/dev/null", "r"),)
    assert made.security.supplemental_groups == (7,)
    assert made.cdi_devices == ()


@pytest.mark.parametrize(
    "edits",
    [{"hooks": [{"hookName": "prestart"}]},
     {"mounts": [{"hostPath": "/h", "containerPath": "/c", "type": "tmpfs"}]}],
)  # fmt: skip
def test_what_cri_has_no_word_for_is_refused(monkeypatch, edits):
    with pytest.raises(RuntimeFailure, match=r"needs? a runtime that knows CDI"):
        expanded(monkeypatch, edits)
