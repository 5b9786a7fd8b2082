"""The program outside of the namespaces, as a process."""

import errno
import os
import socket

import pytest

from sampan.cmd.rootless.outside import Outside, OutsideError


@pytest.fixture
def outside():
    opened = Outside()
    yield opened
    opened.close()


def test_it_binds_and_hands_the_socket_over(outside):
    with outside.bound_socket("127.0.0.1", 0) as bound:
        bound.listen()
        assert not os.get_inheritable(bound.fileno())  # containers must not hold it
        with socket.create_connection(bound.getsockname()):
            connection, _ = bound.accept()
            connection.close()
        with pytest.raises(OSError, match="in use") as failure:
            outside.bound_socket("127.0.0.1", bound.getsockname()[1])
    assert failure.value.errno == errno.EADDRINUSE


def test_what_a_program_says_when_it_fails_is_told(outside):
    with pytest.raises(OutsideError, match="sh: no way out"):
        outside.connect(["sh", "-c", "echo no way out >&2; exit 1"])
    with pytest.raises(OutsideError, match="No such file"):
        outside.connect(["/nonexistent"])


def test_who_killed_it_is_told_so(outside):
    outside._process.kill()
    outside._process.wait()
    with pytest.raises(OutsideError, match="the program outside"):
        outside.connect(["true"])
