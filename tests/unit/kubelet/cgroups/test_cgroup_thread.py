import asyncio
import os

import pytest

from sampan.core.tasks import all_of
from sampan.kubelet.cgroups.cgroup_thread import CgroupThread
from sampan.kubelet.cgroups.pod_cgroups import Cgroups, find_hierarchies

POD = {"metadata": {"uid": "u1"}, "spec": {"containers": [{"name": "a"}]}}
POD_FOLDER = "x/kubepods/besteffort/podu1"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Folders in which a file appears when it is written, and goes with its folder."""
    for name in ("cpu", "memory", "pids"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").touch()
    plain_open, plain_rmdir = os.open, os.rmdir

    def rmdir(path):
        for entry in [each for each in os.scandir(path) if not each.is_dir()]:
            os.unlink(entry.path)
        plain_rmdir(path)

    monkeypatch.setattr(os, "open", lambda path, flags: plain_open(path, flags | os.O_CREAT))
    monkeypatch.setattr(os, "rmdir", rmdir)
    return tmp_path


def test_the_loop_goes_on_while_the_kernel_takes_its_time(kernel):
    slow = kernel / "cpu" / POD_FOLDER / "cpu.shares"
    slow.parent.mkdir(parents=True)
    os.mkfifo(slow)  # who writes into it waits until somebody reads

    async def story():
        thread = CgroupThread(Cgroups("/x", find_hierarchies(kernel)))
        reader = -1

        async def read_later():
            nonlocal reader
            reader = os.open(str(slow), os.O_RDONLY | os.O_NONBLOCK)

        async with asyncio.timeout(60):
            await all_of([thread.ensure(POD), read_later()])
        thread.close()
        shares = os.read(reader, 9)
        os.close(reader)
        return shares

    assert asyncio.run(story()) == b"2"


def test_what_is_removed_was_not_made_after_that(kernel):
    async def story():
        thread = CgroupThread(Cgroups("/x", find_hierarchies(kernel)))
        await all_of([thread.ensure(POD), thread.remove("u1"), thread.ensure(POD)])
        assert (kernel / "pids" / POD_FOLDER).is_dir()
        await all_of([thread.ensure(POD), thread.kill("u1"), thread.remove("u1")])
        assert not (kernel / "pids" / POD_FOLDER).exists()
        await all_of([thread.ensure(POD), thread.remove_orphans(lambda uid: uid != "u1")])
        assert not (kernel / "pids" / POD_FOLDER).exists()
        thread.close()

    asyncio.run(story())
