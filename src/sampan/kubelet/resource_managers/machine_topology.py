"""Processors and NUMA nodes of this machine, as Linux shows them below /sys. Blocking.

Job: read which processor, memory and page is of which NUMA node, once, at the node's start.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.node.machine import read_hugepages
from sampan.kubelet.resource_managers.cpu_sets import CpuSet, parse_cpus
from sampan.kubelet.resource_managers.cpu_topology import Cpu, CpuTopology
from sampan.kubelet.resource_managers.numa import NumaNodes

SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True, slots=True)
class NumaMemory:
    total_bytes: int
    hugepages: Mapping[str, int] = field(default_factory=dict)  # "2Mi" → bytes set aside


@dataclass(frozen=True, slots=True)
class MachineTopology:
    cpus: CpuTopology
    numa: NumaNodes
    memory: Mapping[int, NumaMemory]  # by NUMA node


def read_topology(memory_bytes: int, system: Path = SYSTEM) -> MachineTopology:
    """`memory_bytes`: of the whole machine, for kernels that do not say it of NUMA nodes."""
    online = parse_cpus(_text(system / "cpu/online")) or frozenset(range(os.cpu_count() or 1))
    nodes = {
        int(folder.name.removeprefix("node")): folder
        for folder in (system / "node").glob("node*")
        if is_digits(folder.name.removeprefix("node"))
    }
    if not nodes:  # a kernel without NUMA
        cpus = dict(_cpus_of(0, online, system))
        memory = NumaMemory(memory_bytes, read_hugepages())
        return MachineTopology(CpuTopology(cpus), NumaNodes((0,), {0: (10,)}), {0: memory})
    cpus = {}
    for number, folder in sorted(nodes.items()):
        there = parse_cpus(_text(folder / "cpulist")) & online
        cpus |= dict(_cpus_of(number, there, system))
    ids = tuple(sorted(nodes))
    distances = {number: _numbers(_text(nodes[number] / "distance")) for number in ids}
    found = {
        number: NumaMemory(
            _total(_text(nodes[number] / "meminfo")) or (memory_bytes if len(ids) == 1 else 0),
            read_hugepages(nodes[number] / "hugepages"),
        )
        for number in ids
    }
    return MachineTopology(CpuTopology(cpus), NumaNodes(ids, distances), found)


def _cpus_of(node: int, there: CpuSet, system: Path) -> Iterator[tuple[int, Cpu]]:
    for number in there:
        place = system / f"cpu/cpu{number}"
        siblings = parse_cpus(_text(place / "topology/thread_siblings_list")) or {number}
        socket = _number(_text(place / "topology/physical_package_id"))
        uncore = _uncore(place, len(there))
        yield number, Cpu(min(siblings), socket, node, socket if uncore is None else uncore)


def _uncore(place: Path, of_node: int) -> int | None:
    """The cache that some processors of the NUMA node share, and others do not."""
    for cache in sorted((place / "cache").glob("index*")):
        shared = parse_cpus(_text(cache / "shared_cpu_list"))
        if _number(_text(cache / "level")) > 2 and len(shared) != of_node:
            return _number(_text(cache / "id"))
    return None


def _total(meminfo: str) -> int:
    for line in meminfo.splitlines():
        words = line.split()
        if "MemTotal:" in words and is_digits(words[-2]):
            return int(words[-2]) * 1024
    return 0


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_number(word) for word in text.split())


def _number(text: str) -> int:
    return int(text) if is_digits(text) else 0


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
