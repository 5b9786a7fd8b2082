"""Other users of the machine: what a cluster writes, says and listens on is its owner's."""

import os
from pathlib import Path

import pytest

from tests.support.parts.other_users import (
    family,
    open_to_others,
    reached_by_stranger,
    secrets_of,
    sockets_open_to_others,
    told_of,
)
from tests.support.parts.processes import Program, eventually
from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
KINDS = {
    "one process": ("--runtime", "simulated", "--nodes", "2"),
    "processes": ("--processes", "--runtime", "simulated", "--nodes", "2"),
    "nothing but the API": ("--runtime", "none"),
}


def listening(pids):
    """The addresses at which they can be reached by others, as hexadecimal digits."""
    sockets = {
        os.readlink(link)
        for pid in pids
        for link in Path(f"/proc/{pid}/fd").iterdir()
        if link.is_symlink()
    }
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            is_open = fields[3] == ("0A" if table.startswith("tcp") else "07")
            if is_open and f"socket:[{fields[9]}]" in sockets:
                yield fields[1].partition(":")[0]


REAL = {"containerd": ("--runtime", "cri"), "native": ("--runtime", "native")}
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


def test_a_cluster_is_its_owners(tmp_path):
    for kind, flags in KINDS.items():
        root = tmp_path / kind.replace(" ", "-")
        root.mkdir(mode=0o755)
        cluster = SampanProcess(root, *flags)
        cluster.up()
        try:
            cluster.kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
            pids = family(cluster.pid)
            cluster.run("snapshot", "save", str(root / "saved"))
            assert open_to_others(cluster.data_dir, cluster.kubeconfig) == [], kind
            assert set(listening(pids)) <= LOOPBACK, kind
            told, secrets = told_of(pids), set(secrets_of(cluster.data_dir))
            assert secrets
            assert not [secret for secret in secrets if secret in told], kind
            if os.geteuid() == 0:
                assert reached_by_stranger(root, cluster.data_dir, cluster.kubeconfig) == [], kind
        finally:
            cluster.stop()
            cluster.reset()


@pytest.mark.containerd
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("runtime", REAL)
def test_a_node_is_its_owners(tmp_path, runtime):
    """Sockets of its runtime, its network and its plugins, and what it starts programs with. (The
    kubelet is for others to ask, with credentials.)"""
    cluster = SampanProcess(tmp_path, *REAL[runtime])
    cluster.up()
    try:
        pids = family(cluster.pid)
        told, secrets = told_of(pids), set(secrets_of(cluster.data_dir))
        assert secrets
        assert not [secret for secret in secrets if secret in told]
        assert open_to_others(cluster.data_dir, cluster.kubeconfig) == []
        assert reached_by_stranger(tmp_path, cluster.data_dir, cluster.kubeconfig) == []
        assert sockets_open_to_others(pids) == []
    finally:
        cluster.stop()
        cluster.reset()


def test_a_server_for_tests_is_its_owners(tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    told = {**environment(), "TMPDIR": str(tmp_path)}
    program = Program(
        [*sampan_command("testserver"), "--kubeconfig", str(kubeconfig), "--nodes", "1"],
        tmp_path / "out", told,
    )  # fmt: skip
    try:
        eventually(lambda: "ready in" in (tmp_path / "out").read_text())
        [data_dir] = tmp_path.glob("sampan-testserver-*")
        pids = family(program.process.pid)
        assert open_to_others(data_dir, kubeconfig) == []
        assert set(listening(pids)) <= LOOPBACK
        secrets = set(secrets_of(data_dir)) | set(secrets_of(tmp_path))
        said = told_of(pids)
        assert not [secret for secret in secrets if secret in said]
    finally:
        program.stop(30)
    assert not list(tmp_path.glob("sampan-testserver-*")), "nothing of it stays"


def test_a_kubeconfig_that_everybody_may_read_is_replaced(tmp_path):
    cluster = SampanProcess(tmp_path, "--runtime", "none")
    cluster.kubeconfig.touch(0o666)
    cluster.kubeconfig.chmod(0o666)
    with cluster.kubeconfig.open() as held:  # by somebody who got hold of it in time
        cluster.up()
        try:
            assert open_to_others(cluster.data_dir, cluster.kubeconfig) == []
            assert held.read() == ""
        finally:
            cluster.stop()
            cluster.reset()
