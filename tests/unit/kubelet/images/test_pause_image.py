import os
import platform
import signal
import struct
import subprocess
import sys
import tarfile
from io import BytesIO

import pytest

from sampan.core.elf import UnsupportedMachine, architecture
from sampan.kubelet.images.pause_image import pause_archive
from sampan.kubelet.images.pause_program import pause_program
from sampan.kubelet.images.reference import PAUSE_IMAGE

NATIVE = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


@pytest.fixture
def program(tmp_path):
    if not NATIVE:
        pytest.skip("runs only on its own machine")
    path = tmp_path / "pause"
    path.write_bytes(pause_program(architecture(platform.machine())))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_waits_until_it_is_told_to_end(program, number):
    running = subprocess.Popen([program])
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.02)
    running.send_signal(signal.SIGCHLD)
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.02)
    running.send_signal(number)
    assert running.wait(5) == 0


@pytest.mark.containerd
def test_it_ends_and_reaps_as_the_first_process_of_a_pid_namespace(program):
    # The shell becomes pause (as PID 1) and leaves it a child that has ended.
    script = f"(exit 3) & sleep 0.05; exec {program}"
    shell = subprocess.Popen(["unshare", "--pid", "--fork", "sh", "-c", script])
    child = _eventually_child(shell.pid, program)
    os.kill(child, signal.SIGCHLD)
    _eventually(lambda: not _children(child))
    os.kill(child, signal.SIGTERM)
    assert shell.wait(5) == 0


def test_both_machines_get_an_elf_of_their_own():
    for arch, number in (("amd64", 62), ("arm64", 183)):
        elf = pause_program(arch)
        assert elf[:4] == b"\x7fELF"
        assert struct.unpack_from("<H", elf, 18)[0] == number
        assert struct.unpack_from("<Q", elf, 24)[0] == 0x400000 + 120
        assert len(elf) < 400


def test_the_archive_is_the_same_every_time_and_names_its_image():
    archive = pause_archive("aarch64")
    assert archive == pause_archive("arm64")
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        assert PAUSE_IMAGE.encode() in tar.extractfile("index.json").read()


def test_an_unknown_machine_is_refused():
    with pytest.raises(UnsupportedMachine, match="riscv64"):
        architecture("riscv64")


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()


def _eventually_child(pid, program):
    found = []

    def look():
        for child in _children(pid):
            with open(f"/proc/{child}/cmdline", "rb") as file:
                if file.read().startswith(str(program).encode()):
                    found.append(int(child))
        return bool(found)

    _eventually(look)
    return found[0]


def _eventually(holds):
    import time

    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)
