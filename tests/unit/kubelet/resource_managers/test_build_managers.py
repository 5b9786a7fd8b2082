"""Managers by settings and machine: what is built, what is refused."""

import json

import pytest

from sampan.core.fast_dataclass import replace
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.resource_managers import static_managers as module
from sampan.kubelet.resource_managers.build_managers import build_managers
from sampan.kubelet.resource_managers.cpu_options import CpuOptions
from sampan.kubelet.resource_managers.cpu_topology import Cpu, CpuTopology
from sampan.kubelet.resource_managers.machine_topology import MachineTopology, NumaMemory
from sampan.kubelet.resource_managers.manager_settings import (
    ManagerSettings,
    pinned_resources,
)
from sampan.kubelet.resource_managers.managers import CannotManage
from sampan.kubelet.resource_managers.numa import NumaNodes
from sampan.kubelet.resource_managers.state_file import BadState
from sampan.kubelet.resource_managers.topology_policies import RESTRICTED, TopologySettings
from sampan.kubelet.settings import Capacity

MI = 1 << 20
STATIC = ManagerSettings(cpu_policy="static", memory_policy="Static",
                         reserved_memory={0: {"memory": 100 * MI}})  # fmt: skip


@pytest.fixture
def build(tmp_path, monkeypatch):
    numa = {n: n // 4 for n in range(8)}
    topology = MachineTopology(
        CpuTopology({n: Cpu(n // 2 * 2, numa[n], numa[n], numa[n]) for n in range(8)}),
        NumaNodes((0, 1), {0: (10, 20), 1: (20, 10)}),
        {0: NumaMemory(1024 * MI), 1: NumaMemory(1024 * MI)},
    )
    monkeypatch.setattr(module, "read_topology", lambda _bytes: topology)

    def build(settings, **reserved):
        given = {"reserved_cpu_milli": 500, "reserved_memory_bytes": 100 * MI} | reserved
        machine = Machine(Capacity(8000, 2048 * MI, **given))
        return build_managers(
            settings, machine, str(tmp_path), tasks=Tasks("test"), metrics=Metrics()
        )

    return build


def test_nothing_is_built_where_nothing_is_pinned(build):
    found = build(ManagerSettings())
    assert (found.cpu, found.memory) == (None, None)
    assert pinned_resources(ManagerSettings()) == {}


def test_both_are_built(build):
    found = build(STATIC)
    assert found.cpu.allocatable() == frozenset(range(1, 8))
    assert [block.size // MI for block in found.memory.allocatable()] == [924, 1024]
    assert found.numa.ids == (0, 1)
    assert pinned_resources(STATIC) == {
        "cpu": 'CPU Manager policy "static"', "memory": 'Memory Manager policy "Static"'
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "reserved", "why"),
    [
        ({}, {"reserved_cpu_milli": 0}, "to be greater than zero"),
        ({"reserved_cpus": frozenset({9})}, {}, "reserved-cpus: 9 is not a subset of online-cpus"),
        ({"reserved_cpus": frozenset({1, 2})}, {}, "size of 1-2 did not equal 1"),
        ({"reserved_memory": {}}, {}, 'the total amount "0" of type "memory" is not equal to the '
                                      'value "100Mi" determined by Node Allocatable feature'),
        ({"reserved_memory": {7: {"memory": 1}}}, {}, "references a NUMA node 7"),
        ({"reserved_memory": {}}, {"reserved_memory_bytes": 0}, "specify the system reserved"),
    ],
)  # fmt: skip
def test_what_the_machine_cannot_do_is_refused(build, changes, reserved, why):
    with pytest.raises(CannotManage) as refused:
        build(replace(STATIC, **changes), **reserved)
    assert why in str(refused.value)


def test_too_many_numa_nodes_are_refused(build):
    one = TopologySettings(RESTRICTED, most_numa_nodes=1)
    with pytest.raises(CannotManage, match="with more than 1 NUMA Nodes"):
        build(replace(STATIC, topology=one))


def test_another_policy_than_the_one_that_runs_is_refused(build, tmp_path):
    said = {"policyName": "static", "defaultCpuSet": "0", "entries": {}}
    build(STATIC)
    (tmp_path / "cpu_manager_state").write_text(json.dumps(said))
    with pytest.raises(BadState):
        build(ManagerSettings())


def test_whole_sockets_need_a_numa_node_each(build, monkeypatch):
    sockets = MachineTopology(
        CpuTopology({n: Cpu(n, n, 0, n) for n in range(2)}), NumaNodes(), {0: NumaMemory(MI)}
    )
    monkeypatch.setattr(module, "read_topology", lambda _bytes: sockets)
    with pytest.raises(CannotManage, match="number of sockets are more than number of NUMA"):
        build(ManagerSettings("static", CpuOptions(align_by_socket=True)))
