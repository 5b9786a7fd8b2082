"""cmd/cluster/service_manager.py: what systemd hears."""

import socket

import pytest

from sampan.cmd.cluster.service_manager import notify


@pytest.mark.parametrize("abstract", [False, True])
def test_the_datagram_arrives(tmp_path, abstract):
    name = f"@{tmp_path}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name[1:]}" if abstract else name)
        notify("READY=1", {"NOTIFY_SOCKET": name})
        assert manager.recv(100) == b"READY=1"


def test_nobody_who_listens_is_no_failure(tmp_path, capsys):
    notify("READY=1", {})
    notify("READY=1", {"NOTIFY_SOCKET": str(tmp_path / "none")})
