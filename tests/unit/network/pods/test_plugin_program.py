"""The small program itself, with a socket that answers as the test likes."""

import json
import platform
import socket
import subprocess
import sys
import threading

import pytest

from sampan.core.elf import architecture
from sampan.network.pods.plugin_program import SOCKET, plugin_program

NATIVE = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


@pytest.fixture
def program(tmp_path):
    if not NATIVE:
        pytest.skip("runs only on its own machine")
    file = tmp_path / "sampan"
    file.write_bytes(plugin_program(architecture(platform.machine()), tmp_path))
    file.chmod(0o755)
    return file


def answered(directory, answer):
    """Listens for one call; the list gets all that was sent."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(directory / SOCKET))
    listening.listen()
    received = []

    def serve():
        connection, _ = listening.accept()
        with connection, listening:
            while piece := connection.recv(65536):
                received.append(piece)
            connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return received, thread


def call(program, stdin=b"", **environment):
    return subprocess.run(
        [program], env=environment, input=stdin, capture_output=True, timeout=30, check=False
    )


def test_the_environment_and_the_input_reach_the_agent_and_its_answer_comes_back(program):
    received, thread = answered(program.parent, b"\0" + b'{"ok": 1}' * 3000)
    stdin = b"x" * 100_000
    done = call(program, stdin, CNI_COMMAND="ADD", CNI_ARGS="A=1;B=")
    thread.join(30)
    assert b"".join(received) == b"CNI_COMMAND=ADD\0CNI_ARGS=A=1;B=\0\0" + stdin
    assert done.stdout == b'{"ok": 1}' * 3000
    assert done.returncode == 0


def test_the_exit_code_is_the_agent_s(program):
    _, thread = answered(program.parent, b"\x07no")
    done = call(program)
    thread.join(30)
    assert (done.returncode, done.stdout) == (7, b"no")


def test_an_empty_environment_is_one_zero_byte(program):
    received, thread = answered(program.parent, b"\0")
    call(program, b"{}")
    thread.join(30)
    assert b"".join(received) == b"\0{}"


@pytest.mark.parametrize("present", [True, False])
def test_without_an_answer_it_says_so_as_cni_errors_are_said(program, present):
    if present:
        _, thread = answered(program.parent, b"")
    done = call(program, b"{}", CNI_COMMAND="DEL")
    if present:
        thread.join(30)
    said = json.loads(done.stdout)
    assert said["code"] == 11
    assert "sampan" in said["msg"]
    assert done.returncode == 1


def test_an_agent_that_hangs_up_in_the_middle_is_no_signal_but_an_error(program):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(program.parent / SOCKET))
    listening.listen()
    thread = threading.Thread(target=lambda: listening.accept()[0].close(), daemon=True)
    thread.start()
    done = call(program, b"x" * 1_000_000, CNI_COMMAND="ADD")
    thread.join(30)
    listening.close()
    assert done.returncode == 1
    assert json.loads(done.stdout)["code"] == 11


def test_a_directory_may_have_a_longer_name_than_sockets_may(tmp_path):
    if not NATIVE:
        pytest.skip("runs only on its own machine")
    far = tmp_path / ("x" * 100) / ("y" * 100)
    far.mkdir(parents=True)
    file = tmp_path / "sampan"
    file.write_bytes(plugin_program(architecture(platform.machine()), far))
    file.chmod(0o755)
    assert json.loads(call(file).stdout)["code"] == 11


def test_both_machines_have_a_program_of_some_hundred_bytes(tmp_path):
    for arch in ("amd64", "arm64"):
        assert len(plugin_program(arch, tmp_path)) < 1000
