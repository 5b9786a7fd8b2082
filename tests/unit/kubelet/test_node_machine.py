from sampan.kubelet.node_machine import read_machine
from sampan.kubelet.settings import Capacity


def test_the_machine_is_read(tmp_path):
    machine = read_machine(str(tmp_path / "not" / "there"))
    assert machine.capacity.cpu_milli >= 1000
    assert machine.capacity.memory_bytes > 0
    assert machine.capacity.ephemeral_bytes > 0
    assert machine.kernel_version


def test_a_stated_capacity_goes_before_the_machines_own(tmp_path):
    stated = Capacity(cpu_milli=1, memory_bytes=2)
    assert read_machine(str(tmp_path), stated).capacity == stated
