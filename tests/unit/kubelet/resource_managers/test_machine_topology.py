"""Processors and NUMA nodes out of a made-up /sys/devices/system."""

from sampan.kubelet.resource_managers.cpu_topology import Cpu
from sampan.kubelet.resource_managers.machine_topology import read_topology


def machine(root, *, nodes=2, cores=2):
    """Each node a socket, each core two threads, each core its own cache of level 3."""
    total = nodes * cores * 2
    write(root / "cpu/online", f"0-{total - 1}")
    for node in range(nodes):
        first = node * cores * 2
        folder = root / f"node/node{node}"
        write(folder / "cpulist", f"{first}-{first + cores * 2 - 1}")
        write(folder / "distance", " ".join("10" if n == node else "21" for n in range(nodes)))
        write(folder / "meminfo", f"Node {node} MemTotal:  1024 kB\nNode {node} MemFree: 7 kB")
        write(folder / "hugepages/hugepages-2048kB/nr_hugepages", str(3 * node))
        for cpu in range(first, first + cores * 2):
            pair = f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"
            write(root / f"cpu/cpu{cpu}/topology/thread_siblings_list", pair)
            write(root / f"cpu/cpu{cpu}/topology/physical_package_id", str(node))
            write(root / f"cpu/cpu{cpu}/cache/index3/shared_cpu_list", pair)
            write(root / f"cpu/cpu{cpu}/cache/index3/level", "3")
            write(root / f"cpu/cpu{cpu}/cache/index3/id", str(cpu // 2))
    return root


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def test_two_numa_nodes(tmp_path):
    found = read_topology(0, machine(tmp_path))
    assert found.cpus.cpus[5] == Cpu(core=4, socket=1, numa=1, uncore=2)
    assert found.cpus.details.in_numa(1) == {4, 5, 6, 7}
    assert (found.cpus.cpus_per_core, found.cpus.cpus_per_socket) == (2, 4)
    assert found.numa.ids == (0, 1)
    assert found.numa.distance(0b11) == (10 + 21 + 21 + 10) / 4
    assert found.memory[1].total_bytes == 1024 * 1024
    assert found.memory[1].hugepages == {"2Mi": 3 * 2 * 1024 * 1024}


def test_a_cache_that_a_whole_node_shares_is_the_sockets(tmp_path):
    root = machine(tmp_path)
    for cpu in range(4):
        write(root / f"cpu/cpu{cpu}/cache/index3/shared_cpu_list", "0-3")
    found = read_topology(0, root).cpus.cpus
    assert [found[n].uncore for n in (0, 3, 4, 7)] == [0, 0, 2, 3]


def test_processors_that_are_off_are_not_there(tmp_path):
    root = machine(tmp_path)
    write(root / "cpu/online", "0-5")
    assert read_topology(0, root).cpus.details.cpus == frozenset(range(6))


def test_a_kernel_without_numa_has_one_node(tmp_path):
    write(tmp_path / "cpu/online", "0-1")
    found = read_topology(4096, tmp_path)
    assert found.numa.ids == (0,)
    assert found.cpus.details.cpus == {0, 1}
    assert found.memory[0].total_bytes == 4096


def test_this_machine_can_be_read():
    found = read_topology(1)
    assert found.cpus.details.cpus
    assert all(memory.total_bytes for memory in found.memory.values())
