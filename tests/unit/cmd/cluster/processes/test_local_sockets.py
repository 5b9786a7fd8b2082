"""Sockets between processes: whose they are, and how far down a directory may be."""

import socket
import stat

import pytest

from sampan.cmd.cluster.processes.local_sockets import address_of, listening_socket


@pytest.mark.parametrize("depth", [1, 12])
def test_a_socket_is_its_owners_and_reached_however_long_its_path_is(tmp_path, depth):
    directory = tmp_path.joinpath(*["a-directory-of-some-length"] * depth)
    directory.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(2):  # the second takes the place that the first has left
        with listening_socket(directory, "x.sock") as bound:
            bound.listen()
            assert stat.S_IMODE((directory / "x.sock").stat().st_mode) == 0o600
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(address_of(directory, "x.sock"))
