"""kubelet/images/hello_image.py: the program of a first pod does what it says."""

import platform
import signal
import struct
import subprocess

import pytest

from sampan.cli.verbs.basic import run
from sampan.core.elf import architecture
from sampan.kubelet.images import hello_image
from sampan.kubelet.images.reference import HELLO_IMAGE
from tests.support.parts.processes import eventually


def test_the_client_and_the_node_mean_the_same_image():
    assert run.HELLO_IMAGE == HELLO_IMAGE


def test_the_archive_is_the_same_every_time():
    assert hello_image.hello_archive("x86_64") == hello_image.hello_archive("x86_64")
    assert hello_image.hello_archive("x86_64") != hello_image.hello_archive("aarch64")


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_a_small_elf_file(arch):
    program = hello_image.hello_program(arch)
    assert program[:4] == b"\x7fELF"
    assert len(program) < 1024
    machine = struct.unpack_from("<H", program, 18)[0]
    assert machine == {"amd64": 62, "arm64": 183}[arch]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_and_ends_as_the_first_process_of_a_pid_namespace(tmp_path, number):
    """In a network namespace of its own: the port is free there."""
    path = tmp_path / "hello"
    path.write_bytes(hello_image.hello_program(architecture(platform.machine())))
    path.chmod(0o755)
    output = (tmp_path / "out").open("wb")
    process = subprocess.Popen(
        ["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c",
         f"ip link set lo up; exec {path}"],
        stdout=output,
    )  # fmt: skip
    try:
        eventually(lambda: hello_image.STARTED in (tmp_path / "out").read_bytes(), 60.0)
        inner = subprocess.run(
            ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(3):
            assert ask(inner).endswith(hello_image.GREETING)
        # It says so after it has answered.
        eventually(lambda: (tmp_path / "out").read_bytes().count(hello_image.ANSWERED) == 3, 60.0)
        subprocess.run(["kill", f"-{int(number)}", inner], check=True)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        output.close()


def ask(pid):
    script = (
        "import socket\n"
        f"with socket.create_connection(('127.0.0.1', {hello_image.PORT}), 30) as c:\n"
        " c.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n')\n"
        " d = b''\n"
        " while piece := c.recv(4096): d += piece\n"
        "print(d.decode(), end='')\n"
    )
    command = ["nsenter", "--net", "-t", pid, "python3", "-c", script]
    return subprocess.run(command, capture_output=True, check=True).stdout.replace(b"\r\n", b"\n")
