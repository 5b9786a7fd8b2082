"""The cgroups of a node, in a directory that stands in for the kernel's [N16]."""

import os
import signal
import subprocess

import pytest

from sampan.kubelet.cgroups.limits import Limits, PodBounds
from sampan.kubelet.cgroups.pod_cgroups import Cgroups, find_hierarchies

POD = {
    "metadata": {"uid": "u1"},
    "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]},
}


class Kernel:
    """Folders whose files appear when they are written and go with their folder, as a cgroup's."""

    def __init__(self, monkeypatch):
        self._rmdir, self._open = os.rmdir, os.open
        monkeypatch.setattr("sampan.kubelet.cgroups.pod_cgroups.os.rmdir", self.rmdir)
        monkeypatch.setattr("sampan.kubelet.cgroups.pod_cgroups.os.open", self.open)

    def rmdir(self, path):
        for entry in [one for one in os.scandir(path) if one.is_file()]:
            os.unlink(entry.path)
        self._rmdir(path)

    def open(self, path, flags):
        return self._open(path, flags | os.O_CREAT | os.O_TRUNC)


@pytest.fixture
def v1(tmp_path, monkeypatch):
    for name in ("cpu", "memory", "pids", "unified"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").touch()
    Kernel(monkeypatch)
    return tmp_path


def test_a_machine_without_hierarchies_has_none(tmp_path):
    assert find_hierarchies(tmp_path) is None


def test_version_2_is_told_by_its_controllers(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    found = find_hierarchies(tmp_path)
    assert found is not None
    assert found.unified == tmp_path
    assert Cgroups("/x", found).is_v2


def test_a_pod_has_its_limits_and_leaves_nothing(v1):
    cgroups = Cgroups("/x", find_hierarchies(v1), bounds=PodBounds(pids=77))
    cgroups.prepare()
    assert cgroups.ensure(POD) == "/x/kubepods/burstable/podu1"
    folder = v1 / "cpu/x/kubepods/burstable"
    assert (folder / "podu1/cpu.shares").read_text() == "1024"
    assert (folder / "cpu.shares").read_text() == "1024"  # the quality's own share follows
    assert (v1 / "pids/x/kubepods/burstable/podu1/pids.max").read_text() == "77"
    (v1 / "unified/x/kubepods/burstable/podu1/left").mkdir(parents=True)  # by the runtime
    assert cgroups.uids() == {"u1"}
    cgroups.remove("u1")
    assert cgroups.uids() == set()
    assert (folder / "cpu.shares").read_text() == "2"
    cgroups.remove("u1")  # again: nothing to do


def test_orphans_go_and_known_pods_stay(v1):
    cgroups = Cgroups("/x", find_hierarchies(v1))
    cgroups.ensure(POD)
    cgroups.ensure({**POD, "metadata": {"uid": "u2"}})
    cgroups.remove_orphans(lambda uid: uid == "u2")
    assert cgroups.uids() == {"u2"}


def test_huge_pages_are_limited_where_the_kernel_counts_them(v1):
    """[H6]"""
    room = Limits(hugepages={"2MB": 8 << 20, "1GB": 0})
    cgroups = Cgroups("/x", find_hierarchies(v1), room=room)
    limits = {"hugepages-2Mi": "2Mi", "memory": "1Gi"}
    containers = [{"name": "a", "resources": {"limits": limits}}]
    huge = {"metadata": {"uid": "u3"}, "spec": {"containers": containers}}
    path = cgroups.ensure(huge)
    assert not (v1 / "hugetlb").exists()
    (v1 / "hugetlb").mkdir()
    (v1 / "hugetlb/cgroup.procs").write_text("")
    cgroups = Cgroups("/x", find_hierarchies(v1), room=room)
    cgroups.ensure(huge)
    found = {size: (v1 / f"hugetlb{path}/hugetlb.{size}.limit_in_bytes").read_text()
             for size in ("2MB", "1GB")}  # fmt: skip
    assert found == {"2MB": str(2 << 20), "1GB": "0"}


def test_all_pods_together_have_the_room_that_the_node_gives_them(v1):
    """[N16] node allocatable, enforced"""
    room = Limits(cpu_shares=512, memory_bytes=1 << 30)
    Cgroups("/x", find_hierarchies(v1), room=room).prepare()
    assert (v1 / "memory/x/kubepods/memory.limit_in_bytes").read_text() == str(1 << 30)
    assert (v1 / "cpu/x/kubepods/cpu.shares").read_text() == "512"
    assert not (v1 / "memory/x/kubepods/burstable/memory.limit_in_bytes").exists()


def test_what_runs_in_a_pods_folders_is_killed_and_nothing_else(v1):
    cgroups = Cgroups("/x", find_hierarchies(v1))
    cgroups.prepare()
    left, other = (subprocess.Popen(["sleep", "60"]) for _ in range(2))
    try:
        inner = v1 / "memory/x/kubepods/besteffort/podu1/container"
        inner.mkdir(parents=True)
        (inner / "cgroup.procs").write_text(f"{left.pid}\n{os.getpid()}\n")
        apart = v1 / "memory/x/kubepods/besteffort/podu2"
        apart.mkdir()
        (apart / "cgroup.procs").write_text(f"{other.pid}\n")
        assert cgroups.kill("u1") == 2
        assert left.wait(5) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_below_a_cgroup_that_was_given_only_what_it_offers_is_limited(tmp_path, monkeypatch):
    """What is above it is not touched."""
    Kernel(monkeypatch)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    given = tmp_path / "theirs" / "ours"
    for folder in ("", "/x", "/x/kubepods", "/x/kubepods/burstable", "/x/kubepods/besteffort",
                   "/x/kubepods/burstable/podu1"):  # fmt: skip
        place = tmp_path / f"theirs/ours{folder}"
        place.mkdir(parents=True)
        (place / "cgroup.controllers").write_text("memory pids")
        (place / "cgroup.subtree_control").write_text("")
    cgroups = Cgroups("/theirs/ours/x", find_hierarchies(tmp_path), bounds=PodBounds(pids=77))
    cgroups.prepare()
    assert cgroups.ensure(POD) == "/theirs/ours/x/kubepods/burstable/podu1"
    pod = given / "x/kubepods/burstable/podu1"
    assert (pod / "pids.max").read_text() == "77"
    assert not (pod / "cpu.weight").exists()
    assert (given / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert not (tmp_path / "theirs" / "cgroup.subtree_control").exists()


def limited(cpu, memory):
    limits = {"cpu": cpu, "memory": memory}
    return {
        "metadata": {"uid": "u1"},
        "spec": {
            "containers": [{"name": "a", "resources": {"limits": limits, "requests": limits}}]
        },
    }


def test_room_is_made_before_containers_grow_and_taken_after_they_shrank(v1):
    """[N6]"""
    cgroups = Cgroups("/x", find_hierarchies(v1))
    cgroups.prepare()
    cgroups.ensure(limited("1", "64Mi"))
    quota = v1 / "cpu/x/kubepods/podu1/cpu.cfs_quota_us"
    memory = v1 / "memory/x/kubepods/podu1/memory.limit_in_bytes"
    cgroups.make_room(limited("2", "32Mi"))
    assert (quota.read_text(), memory.read_text()) == ("200000", str(64 << 20))
    cgroups.ensure(limited("2", "32Mi"))
    assert (quota.read_text(), memory.read_text()) == ("200000", str(32 << 20))


def test_what_a_pod_uses_is_read_with_what_its_containers_use(v1):
    cgroups = Cgroups("/x", find_hierarchies(v1))
    cgroups.prepare()
    cgroups.ensure(limited("1", "64Mi"))
    pod = v1 / "memory/x/kubepods/podu1"
    (pod / "c1").mkdir()
    (pod / "memory.usage_in_bytes").write_text("3000\n")
    (pod / "c1/memory.usage_in_bytes").write_text("1000\n")
    usage = cgroups.memory_usage("u1", ["c1", "c2"])
    assert (usage.pod, usage.limit, usage.containers) == (3000, 64 << 20, {"c1": 1000, "c2": 0})
    assert cgroups.memory_usage("gone").pod == 0
