"""What systemd is told about pods; nothing here asks a real one [N16]."""

import pytest

from sampan.kubelet.cgroups import systemd as cgroup_systemd
from sampan.kubelet.cgroups.limits import Limits
from sampan.kubelet.cgroups.pod_cgroups import CgroupFailure, Cgroups, Hierarchies

LIMITS = Limits(cpu_shares=1024, cpu_quota=50_000, memory_bytes=1 << 20, pids=99)


@pytest.mark.parametrize(
    ("v2", "expected"),
    [
        (
            True,
            ["CPUWeight", "t", "39", "CPUQuotaPerSecUSec", "t", "500000",
             "MemoryMax", "t", "1048576", "TasksMax", "t", "99"],
        ),
        (
            False,
            ["CPUShares", "t", "1024", "CPUQuotaPerSecUSec", "t", "500000",
             "MemoryLimit", "t", "1048576", "TasksMax", "t", "99"],
        ),
    ],
)  # fmt: skip
def test_limits_become_properties(v2, expected):
    assert [word for one in cgroup_systemd.limits_of(LIMITS, v2=v2) for word in one] == expected


def test_a_slice_is_started_below_its_parent_and_stopped_by_its_name():
    words = cgroup_systemd.start("/kubepods/burstable/podu-1", LIMITS, v2=True)
    assert words[:3] == ["busctl", "--quiet", "call"]
    at = words.index("StartTransientUnit")
    assert words[at + 1 : at + 5] == [
        "ssa(sv)a(sa(sv))", "kubepods-burstable-podu_1.slice", "replace", "10",
    ]  # fmt: skip
    assert words[words.index("Wants") :][:4] == ["Wants", "as", "1", "kubepods-burstable.slice"]
    assert words[-1] == "0"
    assert cgroup_systemd.stop("/kubepods")[-3:] == ["ss", "kubepods.slice", "replace"]
    assert "Wants" not in cgroup_systemd.start("/kubepods", Limits(), v2=True)
    changed = cgroup_systemd.change("/kubepods", Limits(cpu_shares=2), v2=False)
    assert changed[-5:] == ["true", "1", "CPUShares", "t", "2"]


def test_whether_systemd_runs_is_told_by_its_directory(tmp_path):
    assert cgroup_systemd.is_running(tmp_path)
    assert not cgroup_systemd.is_running(tmp_path / "none")


def test_who_cannot_be_asked_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(cgroup_systemd.SystemdFailure, match="cannot be asked"):
        cgroup_systemd.run_systemctl(cgroup_systemd.stop("/kubepods"))
    (tmp_path / "busctl").write_text("#!/bin/sh\necho no such unit >&2\nexit 1\n")
    (tmp_path / "busctl").chmod(0o755)
    with pytest.raises(cgroup_systemd.SystemdFailure, match=r"StopUnit kubepods.slice: no such"):
        cgroup_systemd.run_systemctl(cgroup_systemd.stop("/kubepods"))


class Systemd:
    """Makes and removes folders as the real one does; keeps what it was told."""

    def __init__(self, base):
        self.base, self.heard = base, []

    def __call__(self, command):
        method, name = command[6], command[8]
        self.heard.append((method, name))
        parts = name.removesuffix(".slice").split("-")
        slices = ["-".join(parts[: at + 1]) + ".slice" for at in range(len(parts))]
        place = self.base.joinpath(*slices)
        if method == "StartTransientUnit":
            place.mkdir(parents=True)
        elif method == "StopUnit":
            if any(place.iterdir()):
                raise cgroup_systemd.SystemdFailure("in use")
            place.rmdir()


def test_pods_have_slices_that_systemd_makes(tmp_path, monkeypatch):
    systemd = Systemd(tmp_path)
    monkeypatch.setattr("sampan.kubelet.cgroups.systemd.run_systemctl", systemd)
    cgroups = Cgroups("/x", Hierarchies(tmp_path, {}), driver="systemd")
    cgroups.prepare()
    requests = {"resources": {"requests": {"cpu": "1"}}}
    pod = {"metadata": {"uid": "u-1"}, "spec": {"containers": [{"name": "a", **requests}]}}
    cgroups.ensure(pod)
    cgroups.ensure(pod)  # a second time changes it
    slice_of_pod = "x-kubepods-burstable-podu_1.slice"
    assert [method for method, name in systemd.heard if name == slice_of_pod] == [
        "StartTransientUnit", "SetUnitProperties",
    ]  # fmt: skip
    assert cgroups.uids() == {"u-1"}
    found = cgroups.path_of("u-1", "memory")
    assert found is not None
    assert found.name == slice_of_pod
    busy = found / cgroups.container_folder("abc")
    busy.mkdir()
    with pytest.raises(CgroupFailure, match="in use"):
        cgroups.remove("u-1")
    busy.rmdir()
    cgroups.remove("u-1")
    cgroups.remove("u-1")
    assert cgroups.uids() == set()
