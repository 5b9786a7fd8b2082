"""Victims of a machine without memory, as the kernel tells of them [N16]."""

import asyncio
import os

import pytest

from sampan.kubelet.eviction.system_oom import SystemOom, Victim, victim_of

SYSTEM = (
    b"6,812,14094211379,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,"
    b"mems_allowed=0,global_oom,task_memcg=/user.slice,task=stress, a,pid=4450,uid=0\n"
)
OF_A_POD = (
    b"6,813,14094211380,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=350f,"
    b"mems_allowed=0,oom_memcg=/x/kubepods/burstable/podu,task_memcg=/x/kubepods/burstable/podu/c,"
    b"task=tail,pid=4451,uid=0\n"
)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (SYSTEM, Victim("stress, a", 4450)),
        (OF_A_POD, None),
        (b"14" + SYSTEM[1:], None),  # a program wrote it
        (b"6,1,2,-;something else\n SUBSYSTEM=x\n", None),
        (b"", None),
    ],
)
def test_only_the_kernels_own_word_on_the_whole_machine_counts(record, expected):
    assert victim_of(record) == expected


def test_a_victim_becomes_an_event_of_the_node(tmp_path):
    path = tmp_path / "kmsg"
    os.mkfifo(path)

    async def story():
        told, heard = asyncio.Event(), []

        def warn(reason, message):
            heard.append((reason, message))
            told.set()

        watching = asyncio.get_running_loop().create_task(SystemOom(warn, str(path)).run())
        await asyncio.sleep(0)
        writer = os.open(path, os.O_WRONLY)
        os.write(writer, SYSTEM)
        await asyncio.wait_for(told.wait(), 60)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        os.close(writer)
        return heard

    [(reason, message)] = asyncio.run(story())
    assert reason == "SystemOOM"
    assert message == "System OOM encountered, victim process: stress, a, pid: 4450"


def test_a_log_that_cannot_be_read_is_done_without(tmp_path):
    asyncio.run(SystemOom(lambda *_: None, str(tmp_path / "none")).run())


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel's log is for root")
def test_the_kernels_real_log_can_be_waited_for():
    async def story():
        heard = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await SystemOom(lambda *told: heard.append(told)).run()
        return heard

    assert asyncio.run(story()) == []
