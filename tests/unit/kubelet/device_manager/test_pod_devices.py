"""Which container holds which devices, through a restart."""

import base64
import json

from sampan.kubelet.device_manager.pod_devices import Allocation, PodDevices


def test_the_next_agent_finds_who_holds_what(tmp_path):
    path = tmp_path / "kubelet_internal_checkpoint"
    first = PodDevices(str(path))
    first.read()  # there is none
    first.add("u1", "c", "x/gpu", Allocation({"a": 0b1, "b": 0b10, "n": 0}, b"answer"))
    first.add("u2", "c", "x/gpu", Allocation({"z": 0}, b""))
    path.write_text(first.written({"x/gpu": ["a", "b"]}))
    written = json.loads(path.read_text())["Data"]
    assert written["RegisteredDevices"] == {"x/gpu": ["a", "b"]}
    assert written["PodDeviceEntries"][0] == {
        "PodUID": "u1", "ContainerName": "c", "ResourceName": "x/gpu",
        "DeviceIDs": {"0": ["a"], "1": ["b"], "-1": ["n"]},
        "AllocResp": base64.b64encode(b"answer").decode(),
    }  # fmt: skip
    again = PodDevices(str(path))
    again.read()
    assert again.of("u1", "c") == first.of("u1", "c")
    assert again.known_resources == ("x/gpu",)
    assert again.in_use("x/gpu") == {"a", "b", "n", "z"}
    assert list(again.holders("x/gpu", "z")) == ["u2"]
    assert again.remove("u1")
    assert not again.remove("u1")
    assert again.in_use("x/gpu") == {"z"}


def test_a_damaged_checkpoint_is_as_good_as_none(tmp_path):
    path = tmp_path / "c"
    for text in ("{", "[]", '{"Data": {}, "Checksum": 1}', '{"Checksum": 1}'):
        path.write_text(text)
        devices = PodDevices(str(path))
        devices.read()
        assert list(devices.pods()) == []
