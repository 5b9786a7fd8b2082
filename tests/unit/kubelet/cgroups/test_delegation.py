"""Which cgroup is a user's to divide: trees of real files, laid out as the kernel's [R4]."""

import os

import pytest

from sampan.kubelet.cgroups.delegation import (
    LEAF,
    Delegated,
    NotDelegated,
    SeenCgroup,
    is_of_before,
    judge,
    look,
    make_ready,
    offered_controllers,
    own_place,
)

ME, SOMEBODY = os.getuid(), os.getuid() + 1
SERVICE = "/user.slice/user@7.service"
SCOPE = f"{SERVICE}/app.slice/run-1.scope"


class Machine:
    """Its cgroups and its processes: 42 was started by 41, which 1 started."""

    def __init__(self, root):
        self.mount, self.proc = root / "cgroup", root / "proc"
        self.add("", "cpu memory pids")
        self.run(42, parent=41)
        self.run(41, parent=1)

    def add(self, place, controllers="", processes=()):
        folder = self.mount / place.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.controllers").write_text(f"{controllers}\n")
        (folder / "cgroup.subtree_control").write_text("")
        (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in processes))
        return folder

    def run(self, pid, parent, place=SCOPE):
        folder = self.proc / str(pid)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stat").write_text(f"{pid} (sh) (x) S {parent} 1 1")
        (folder / "cgroup").write_text(f"1:name=systemd:/\n0::{place}\n")

    def seen(self, uid=ME):
        return look(uid, 42, self.mount, self.proc)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_a_scope_of_ones_own_is_taken_with_what_can_be_limited_in_it(machine):
    machine.add(SCOPE, "cpu memory pids", [42, 41])
    assert judge(machine.seen()) == Delegated(SCOPE, ("cpu", "memory", "pids"))
    assert Delegated(SCOPE, ("memory", "pids")).lacking == ["cpu"]


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (None, "this machine has cgroups of version 1"),
        (SeenCgroup("/a", False, ("cpu",), False), "the cgroup /a is not yours"),
        (SeenCgroup("", False, ("cpu",), False), "the cgroup / is not yours"),
        (SeenCgroup("/a", True, (), False), "nothing can be limited in the cgroup /a"),
        (SeenCgroup("/a", True, ("cpu",), True), "other programs are in the cgroup /a"),
    ],
)
def test_why_none_is_taken_is_said(seen, why):
    assert judge(seen) == NotDelegated(why)


def test_what_belongs_to_another_user_is_not_ours(machine):
    machine.add(SCOPE, "cpu", [42])
    assert not machine.seen(SOMEBODY).is_ours
    os.chmod(machine.mount / SCOPE.strip("/") / "cgroup.subtree_control", 0o444)
    assert not machine.seen().is_ours


def test_processes_that_did_not_start_us_are_others(machine):
    machine.add(SCOPE, "cpu", [41, 42])
    assert not machine.seen().others
    machine.add(SCOPE, "cpu", [41, 42, 43])
    assert machine.seen().others


def test_a_part_that_is_not_shown_is_not_ours(machine):
    assert machine.seen() == SeenCgroup(SCOPE, False, (), True)


def test_who_is_in_it_goes_to_a_leaf_and_controllers_are_given_on(machine):
    folder = machine.add(SCOPE, "memory hugetlb", [42])
    machine.add(f"{SCOPE}/{LEAF}")
    make_ready(Delegated(SCOPE, ("memory", "hugetlb")), machine.mount)
    assert (folder / LEAF / "cgroup.procs").read_text() == "42"
    assert (folder / "cgroup.subtree_control").read_text() == "+memory +hugetlb"


def test_a_second_one_beside_it_uses_what_is_ready(machine):
    machine.add(SCOPE, "cpu")
    machine.add(f"{SCOPE}/{LEAF}", "cpu", [42, 43])
    machine.run(42, parent=41, place=f"{SCOPE}/{LEAF}")
    assert judge(machine.seen()) == Delegated(SCOPE, ("cpu",))


def test_pods_of_before_are_joined_where_the_cgroup_above_both_is_ours(machine):
    before = f"{SERVICE}/app.slice/run-0.scope"
    machine.add(f"{SERVICE}/app.slice")
    machine.add(SCOPE, "cpu", [42])
    machine.add(before, "cpu")
    seen = machine.seen()
    assert not is_of_before(before, "/sampan-1", seen, ME, machine.mount)
    machine.add(f"{before}/sampan-1", "cpu")
    assert is_of_before(before, "/sampan-1", seen, ME, machine.mount)
    assert not is_of_before(before, "/sampan-1", seen, SOMEBODY, machine.mount)
    os.chmod(machine.mount / f"{SERVICE}/app.slice/cgroup.procs".strip("/"), 0o444)
    assert not is_of_before(before, "/sampan-1", seen, ME, machine.mount)


def test_the_own_place_is_that_of_version_2():
    assert own_place("2:cpu:/x\n0::/a/b\n") == "/a/b"
    assert own_place("0::/\n") == ""
    assert own_place("2:cpu:/x\n") is None


def test_version_1_offers_no_list(machine, tmp_path):
    assert offered_controllers("", machine.mount) == {"cpu", "memory", "pids"}
    assert offered_controllers("", tmp_path / "none") is None
