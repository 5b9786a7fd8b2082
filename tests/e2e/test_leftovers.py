"""The check that nothing is left behind can fail: each kind of thing is found."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sampan.kubelet.cgroups.limits import root_of
from sampan.kubelet.cgroups.pod_cgroups import find_hierarchies
from sampan.network.bridge import PodNetwork, owner_mark
from tests.support.parts.leftovers import leftovers

pytestmark = [pytest.mark.containerd, pytest.mark.slow]

BRIDGE, SUBNET = "sampantest9", "198.51.100.0/24"


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


@pytest.fixture
def data():
    data = Path(tempfile.mkdtemp(prefix="sampan-left-"))
    yield data
    if data.exists():
        shutil.rmtree(data)


def test_a_directory_is_found_and_without_it_there_is_nothing(data):
    assert leftovers(data) == {"directories": [str(data)]}
    data.rmdir()
    assert leftovers(data) == {}


def test_processes_are_found_by_their_command_and_by_their_cgroup(data):
    folder = Path(f"{find_hierarchies().all[-1]}{root_of(data)}") / "inside"
    folder.mkdir(parents=True)
    with (
        subprocess.Popen(["sh", "-c", "read line", str(data)], stdin=subprocess.PIPE) as named,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE) as grouped,
    ):
        (folder / "cgroup.procs").write_text(str(grouped.pid))
        found = leftovers(data)
        grouped.kill()
        named.kill()
    pids = {int(line.split()[0]) for line in found["processes"]}
    assert pids == {named.pid, grouped.pid}
    assert found["cgroups"] == [str(folder.parent)]
    folder.rmdir()
    folder.parent.rmdir()
    assert "processes" not in leftovers(data)


def test_mounts_and_namespaces_are_found(data):
    (data / "tmpfs").mkdir()
    (data / "namespace").touch()
    run("mount", "-t", "tmpfs", "none", str(data / "tmpfs"))
    run("mount", "--bind", f"/proc/{os.getpid()}/ns/uts", str(data / "namespace"))
    found = leftovers(data)
    run("umount", str(data / "tmpfs"))
    run("umount", str(data / "namespace"))
    assert [line.split()[4] for line in found["mounts"]] == [str(data / "tmpfs")]
    assert [line.split()[4] for line in found["namespaces"]] == [str(data / "namespace")]
    assert leftovers(data).keys() == {"directories"}


def test_interfaces_and_packet_filter_rules_are_found_unless_they_are_somebody_else_s(data):
    network = PodNetwork(BRIDGE, SUBNET)
    rule = ["POSTROUTING", "-s", SUBNET, "-j", "MASQUERADE"]
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    try:
        run("ip", "link", "set", BRIDGE, "alias", owner_mark(data))
        run("nft", "add", "table", "ip", f"{BRIDGE}-pods")
        run("iptables", "-w", "-t", "nat", "-A", *rule)
        found = leftovers(data, network)
        assert found["interfaces"] == [BRIDGE]
        assert found["rules"] == [
            f"table ip {BRIDGE}-pods", f"-A POSTROUTING -s {SUBNET} -j MASQUERADE",
        ]  # fmt: skip
        run("ip", "link", "set", BRIDGE, "alias", "somebody else")
        assert leftovers(data, network).keys() == {"directories"}
    finally:
        subprocess.run(["iptables", "-w", "-t", "nat", "-D", *rule], capture_output=True)
        subprocess.run(["nft", "delete", "table", "ip", f"{BRIDGE}-pods"], capture_output=True)
        run("ip", "link", "delete", BRIDGE)
    assert leftovers(data, network).keys() == {"directories"}


DOCTOR = """
import subprocess
from pathlib import Path
from sampan.cmd.verbs.machine import doctor, leftovers
from sampan.network.bridge import owner_mark

def run(*words):
    subprocess.run(words, check=True)

def ours():
    return [check for check in leftovers.checks("/no/such") if "sampan9" in check.what]

run("ip", "link", "add", "sampan9", "type", "bridge")
run("ip", "link", "set", "sampan9", "alias", owner_mark(Path("/no/such/directory")))
run("nft", "add", "table", "ip", "sampan9-pods")
print([check.what for check in ours()])
doctor.repair(ours())
print([check.what for check in ours()])
"""


def test_the_doctor_removes_what_a_killed_cluster_left():
    """In a network namespace of its own: bridges and rules there are nobody else's."""
    command = ["unshare", "--net", sys.executable, "-c", DOCTOR]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        [
            "['sampan9', 'ip sampan9-pods']",
            "$ ip link delete sampan9",
            "$ nft delete table ip sampan9-pods",
            "[]",
        ]
    )
