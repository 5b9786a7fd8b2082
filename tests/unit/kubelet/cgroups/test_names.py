"""Names of cgroups, against a table of what the original makes of them [N16]."""

import pytest

from sampan.kubelet.cgroups.names import (
    WrongDriver,
    container_folder,
    folder,
    settled_driver,
    uid_in,
    unit,
)

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


@pytest.mark.parametrize(
    ("asked", "said", "private", "expected"),
    [
        ("", "", True, "cgroupfs"),
        ("systemd", "", True, "systemd"),
        ("", "systemd", False, "systemd"),
        ("", "cgroupfs", False, "cgroupfs"),
        ("cgroupfs", "", False, "cgroupfs"),
        ("", "", False, ""),
        ("none", "systemd", False, ""),
        ("none", "", True, ""),
    ],
)
def test_the_driver_is_the_runtimes_own(asked, said, private, expected):
    assert settled_driver(asked, said, private=private, systemd_runs=True) == expected


@pytest.mark.parametrize(
    ("asked", "said", "private", "systemd_runs", "advice"),
    [
        ("cgroupfs", "systemd", False, True, "leave the flag out, or set SystemdCgroup"),
        ("systemd", "", True, False, "leave the flag out"),
        ("", "systemd", False, False, "set SystemdCgroup = false"),
    ],
)
def test_what_cannot_work_together_is_refused_with_advice(
    asked, said, private, systemd_runs, advice
):
    with pytest.raises(WrongDriver, match=advice):
        settled_driver(asked, said, private=private, systemd_runs=systemd_runs)
