"""The memory manager: what it gives is on disk, and found again."""

import json

import pytest

from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.resources_hook import Grants, PodRefused
from sampan.kubelet.resource_managers.machine_topology import NumaMemory
from sampan.kubelet.resource_managers.memory_manager import MemoryManager, initial_nodes
from sampan.kubelet.resource_managers.memory_state import Block
from sampan.kubelet.resource_managers.numa import Hint
from sampan.kubelet.resource_managers.state_file import BadState
from tests.support import virtual_time

MI = 1 << 20
TWO = {0: NumaMemory(1024 * MI), 1: NumaMemory(1024 * MI, {"2Mi": 64 * MI})}


def manager(root, memory=TWO):
    nodes = initial_nodes(memory, {0: {"memory": 24 * MI}})
    return MemoryManager(nodes, str(root), tasks=Tasks("test"), metrics=Metrics())


def pod(uid, memory, *, init=None):
    def container(name, amount):
        amounts = {"cpu": "1", "memory": amount}
        return {"name": name, "resources": {"requests": amounts, "limits": amounts}}

    spec = {"containers": [container("c", memory)]}
    if init:
        spec["initContainers"] = [container("i", init)]
    return {"metadata": {"uid": uid, "name": uid}, "spec": spec}


ANYWHERE = Hint(None, True)


async def give(memory, pod, affinity=ANYWHERE):
    for container in [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]:
        await memory.allocate(pod, container, affinity)


def test_what_was_given_is_found_by_the_next_agent(tmp_path):
    """[H5]"""

    async def story():
        memory, one = manager(tmp_path), pod("a", "500Mi")
        await give(memory, one, Hint(0b10, True))
        assert await memory.grants(one, one["spec"]["containers"][0]) == Grants(memory_nodes="1")
        written = json.loads((tmp_path / "memory_manager_state").read_text())
        assert written["machineState"]["1"]["memoryMap"]["memory"] == {
            "total": 1024 * MI, "systemReserved": 0, "allocatable": 960 * MI,
            "reserved": 500 * MI, "free": 460 * MI,
        }  # fmt: skip
        again = manager(tmp_path)
        assert again.blocks_of("a", "c") == (Block((1,), "memory", 500 * MI),)
        again.keep_only(set().__contains__)
        assert again.blocks_of("a", "c") == ()

    virtual_time.run(story())


def test_what_an_init_container_had_is_given_back_when_the_next_one_starts(tmp_path):
    async def story():
        memory, one = manager(tmp_path), pod("a", "200Mi", init="300Mi")
        await give(memory, one, Hint(0b01, True))
        assert memory.blocks_of("a", "i") == (Block((0,), "memory", 100 * MI),)
        await memory.grants(one, one["spec"]["containers"][0])
        assert memory.blocks_of("a", "i") == ()
        assert memory.blocks_of("a", "c") == (Block((0,), "memory", 200 * MI),)

    virtual_time.run(story())


def test_a_pod_that_cannot_be_served_is_refused_as_upstream_does(tmp_path):
    async def story():
        with pytest.raises(PodRefused) as refused:
            await give(manager(tmp_path), pod("a", "4Gi"))
        assert refused.value.verdict.message == (
            "Pod was rejected: Allocate failed due to [memorymanager] failed to get the default "
            "NUMA affinity, no NUMA nodes with enough memory is available, which is unexpected"
        )

    virtual_time.run(story())


def test_another_machine_is_noticed(tmp_path):
    async def story():
        await give(manager(tmp_path), pod("a", "100Mi"))

    virtual_time.run(story())
    with pytest.raises(BadState, match="machine state is different"):
        manager(tmp_path, {**TWO, 1: NumaMemory(512 * MI)})


def test_what_can_be_given_is_listed_by_node():
    nodes = initial_nodes(TWO, {0: {"memory": 24 * MI}})
    assert nodes[0].tables["memory"].allocatable == 1000 * MI
    assert nodes[1].tables["hugepages-2Mi"].allocatable == 64 * MI
