"""cmd/verbs/machine/doctor.py: each finding is ok, or says what to do."""

import socket

import pytest

from sampan.cmd.verbs.machine import doctor
from sampan.cmd.verbs.machine.checks import Check
from sampan.kubelet.cgroups.delegation import Delegated, NotDelegated
from tests.support.manual_clock import ManualClock


def test_every_problem_has_a_remedy(tmp_path, capsys):
    checks = list(doctor.examine(str(tmp_path / "data"), 0))
    assert len({check.what for check in checks}) == len(checks)
    for check in checks:
        assert check.is_ok or check.remedy
    assert doctor.run(str(tmp_path / "data"), 0) in (0, 1)
    assert len(capsys.readouterr().out.splitlines()) >= len(checks)


def test_a_port_that_somebody_else_has_is_a_problem(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        [check] = [one for one in doctor.examine(str(tmp_path), port) if one.what == "port"]
    assert not check.is_ok
    assert "--port" in check.remedy


@pytest.mark.parametrize(
    ("release", "is_ok"), [("3.10.0-1160.el7.x86_64", False), ("4.19.0", True), ("6.1.0-18", True)]
)
def test_an_old_kernel_is_a_problem(release, is_ok):
    check = doctor.kernel(release)
    assert check.is_ok == is_ok
    assert "--runtime simulated" in check.remedy


def test_another_system_is_no_problem_but_has_no_real_containers():
    check = doctor.another_system("Darwin", "23.6.0")
    assert check.is_ok
    assert check.text.startswith("Darwin 23.6.0: ")
    assert "real containers need Linux" in check.text


def test_a_runtime_that_fits_is_named_and_what_is_missing_of_the_other():
    assert doctor.runtime("", has_containerd=False).text == "crun and conmon"
    assert doctor.runtime("", False, has_crun=False).text == "runc and conmon"
    assert "--runtime cri fits" in doctor.runtime("", True).text
    for lacks, has_crun in (("conmon", True), ("", False)):
        only = doctor.runtime(lacks, True, has_crun=has_crun)
        assert only.is_ok
        assert only.text.startswith("containerd and runc; ")
        assert "apt install conmon crun" in only.text
    neither = doctor.runtime("conmon and crun", False)
    assert not neither.is_ok
    assert "apt install conmon crun" in neither.remedy
    assert "containerd" in neither.remedy


def test_an_ordinary_user_is_told_how_pods_get_limits():
    none = doctor.limits_without_root(NotDelegated("the cgroup /a is not yours"))
    assert "the cgroup /a is not yours" in none.text
    assert "systemd-run --user --scope -p Delegate=yes sampan up" in none.text
    few = doctor.limits_without_root(Delegated("/a", ("memory", "pids")))
    assert "none of cpu: put the lines" in few.text
    assert "Delegate=cpu memory pids" in few.text
    whole = doctor.limits_without_root(Delegated("/a", ("cpu", "memory", "pids")))
    assert whole.text == "of pods, in the cgroup /a"
    assert all(check.is_ok for check in (none, few, whole))


def test_a_clock_of_long_ago_is_a_problem():
    assert not doctor.clock(ManualClock(1_000_000.0)).is_ok
    assert doctor.clock(ManualClock(1_800_000_000.0)).is_ok


def test_repairs_are_printed_done_once_and_survive_failures(tmp_path, capfd):
    touch = ("touch", str(tmp_path / "file"))
    doctor.repair([
        Check("a", False, "", repair=touch), Check("b", False, "", repair=touch),
        Check("c", True, "", repair=("touch", str(tmp_path / "never"))),
        Check("d", False, "", repair=("no-such-program-here",)), Check("e", False, ""),
        Check("f", False, "", repair=("false",)),
    ])  # fmt: skip
    said = capfd.readouterr()
    assert said.out.count("$ touch") == 1
    assert (tmp_path / "file").exists()
    assert not (tmp_path / "never").exists()
    assert "no-such-program-here" in said.err
    assert "it ended with 1" in said.err
