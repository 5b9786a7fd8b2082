"""The process side of the private containerd, with a stand-in program that only waits."""

import asyncio
import json
import os
import platform
import shutil
import signal
import socket
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sampan.core.clock import SystemClock
from sampan.core.elf import architecture
from sampan.kubelet.containerd.config import ContainerdError, layout
from sampan.kubelet.containerd.process import PrivateContainerd, find_running
from sampan.kubelet.images.pause_program import pause_program

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="the stand-in is a Linux program",
)


@pytest.fixture
def place():
    """A data directory, and a `containerd` that waits for SIGTERM. A short path, so that its socket
    is inside of it, and not in /run where it would stay."""
    place = Path(tempfile.mkdtemp(prefix="sampan-unit-"))
    programs = place / "bin"
    programs.mkdir()
    program = programs / "containerd"
    program.write_bytes(pause_program(architecture(platform.machine())))
    program.chmod(0o755)
    yield place
    left = find_running(layout(place / "data"))  # of a test that failed
    if left is not None:
        os.kill(left.pid, signal.SIGKILL)
    shutil.rmtree(place)


def daemon_of(place, *, cni="cni", **more):
    return PrivateContainerd(
        place / "data",
        cni_conf_dir=place / cni,
        cni_bin_dir=place / "plugins",
        environment={"PATH": str(place / "bin")},
        clock=SystemClock(),
        **more,
    )


@asynccontextmanager
async def answering(place):
    """Somebody takes connections at the socket, as the real one would."""
    path = layout(place / "data").socket
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(100)
        yield


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def eventually(holds):
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


async def started(daemon, place):
    """A program's arguments are seen a moment after it runs; a real one does not answer before."""
    await daemon.start()
    await eventually(lambda: find_running(layout(place / "data")) is not None)


def told(place, tell):
    async def run():
        async with answering(place):
            await tell()

    asyncio.run(run())


def test_it_is_started_recorded_and_stopped(place):
    async def tell():
        daemon = daemon_of(place)
        await started(daemon, place)
        pid = daemon.pid
        assert is_alive(pid)
        assert find_running(layout(place / "data")).pid == pid
        await daemon.stop()
        assert not is_alive(pid)
        assert find_running(layout(place / "data")) is None

    told(place, tell)


def test_one_that_was_left_over_is_taken_over(place):
    """[N21]"""

    async def tell():
        first = daemon_of(place)
        await started(first, place)
        second = daemon_of(place)
        await started(second, place)
        assert second.pid == first.pid
        await second.stop()
        await first.stop()

    told(place, tell)


def test_one_with_another_configuration_is_replaced(place):
    async def tell():
        first = daemon_of(place)
        await started(first, place)
        await first._tasks.stop()  # its sampan is gone
        second = daemon_of(place, cni="elsewhere")
        await started(second, place)
        assert second.pid != first.pid
        assert not is_alive(first.pid)
        await second.stop()
        await first.stop()

    told(place, tell)


def test_one_that_dies_is_started_again_and_says_so(place):
    came_back = []

    async def tell():
        daemon = daemon_of(place, came_back=lambda: came_back.append(True))
        await started(daemon, place)
        first = daemon.pid
        assert not came_back
        os.kill(first, signal.SIGKILL)
        await eventually(lambda: daemon.pid != first)
        assert is_alive(daemon.pid)
        await eventually(lambda: came_back == [True])
        assert json.loads(layout(place / "data").record.read_text())["pid"] == daemon.pid
        await daemon.stop()
        assert not is_alive(daemon.pid or first)

    told(place, tell)


def test_a_recorded_pid_of_somebody_else_is_not_believed(place):
    async def tell():
        daemon = daemon_of(place)
        await started(daemon, place)
        await daemon.stop()
        record = layout(place / "data").record
        record.write_text(json.dumps({"pid": os.getpid(), "started": 1, "config": "x"}))
        assert find_running(layout(place / "data")) is None

    told(place, tell)


def test_a_program_that_ends_at_once_is_told_with_its_last_words(place):
    program = place / "bin" / "containerd"
    program.write_text("#!/bin/sh\necho 'the disk is on fire' >&2\nexit 1\n")

    async def run():
        daemon = daemon_of(place)
        with pytest.raises(ContainerdError, match="the disk is on fire"):
            await started(daemon, place)
        assert daemon.pid is None

    asyncio.run(run())
