"""Names of cgroups, against a table of what the original makes of them [N16]."""

import pytest

from sampan.kubelet.cgroup_names import container_folder, folder, uid_in, unit

UID = "1a2b3c4d-0000-4e5f-8a9b-0c1d2e3f4a5b"
SLICE_UID = UID.replace("-", "_")


@pytest.mark.parametrize(
    ("path", "slices"),
    [
        ("", ""),
        ("/kubepods", "/kubepods.slice"),
        ("/kubepods/burstable", "/kubepods.slice/kubepods-burstable.slice"),
        (
            f"/kubepods/pod{UID}",
            f"/kubepods.slice/kubepods-pod{SLICE_UID}.slice",
        ),
        (
            f"/kubepods/besteffort/pod{UID}",
            f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SLICE_UID}.slice",
        ),
        ("/sampan-12/kubepods", "/sampan_12.slice/sampan_12-kubepods.slice"),
    ],
)
def test_with_systemd_every_folder_is_a_slice_that_names_its_parents(path, slices):
    assert folder(path, "systemd") == slices
    assert folder(path, "cgroupfs") == path
    assert unit(path) == slices.rpartition("/")[2]


@pytest.mark.parametrize("driver", ["cgroupfs", "systemd"])
def test_the_uid_comes_back_out_of_the_folder(driver):
    for quality in ("", "/burstable", "/besteffort"):
        name = folder(f"/x-y/kubepods{quality}/pod{UID}", driver).rpartition("/")[2]
        assert uid_in(name, driver) == UID
    for other in ("kubepods-burstable.slice", "burstable", "system.slice"):
        assert uid_in(other, driver) == ""


@pytest.mark.parametrize(
    ("driver", "runtime", "expected"),
    [
        ("cgroupfs", "containerd", "abc"),
        ("systemd", "containerd", "cri-containerd-abc.scope"),
        ("cgroupfs", "cri-o", "crio-abc"),
        ("systemd", "cri-o", "crio-abc.scope"),
    ],
)
def test_a_container_has_its_folder_below_its_pod(driver, runtime, expected):
    assert container_folder("abc", driver, runtime) == expected
