"""Memory of NUMA nodes: totals, reservations, assignments. Pure.

Job: the memory manager's books, and one entry more or less in them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from sampan.core.fast_dataclass import dataclass, replace


class BadMemoryState(Exception):
    """What was stored cannot be true. In upstream's words."""


@dataclass(frozen=True, slots=True)
class Table:
    """One resource of one NUMA node, in bytes."""

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int


@dataclass(frozen=True, slots=True)
class NodeMemory:
    cells: tuple[int, ...]  # the NUMA nodes that it serves containers with, itself among them
    tables: Mapping[str, Table]
    assignments: int = 0


Nodes = Mapping[int, NodeMemory]


@dataclass(frozen=True, slots=True)
class Block:
    """So much of a resource, of these NUMA nodes together."""

    nodes: tuple[int, ...]
    resource: str
    size: int


Blocks = Sequence[Block]


@dataclass(frozen=True, slots=True)
class MemoryState:
    nodes: Nodes = field(default_factory=dict)
    blocks: Mapping[str, Mapping[str, Blocks]] = field(default_factory=dict)  # uid, container

    def of(self, uid: str, container: str) -> Blocks:
        return self.blocks.get(uid, {}).get(container, ())

    def with_blocks(self, uid: str, container: str, blocks: Blocks, nodes: Nodes) -> "MemoryState":
        of_pod = {**self.blocks.get(uid, {}), container: blocks}
        return MemoryState(nodes, {**self.blocks, uid: of_pod})

    def without_blocks(self, uid: str, container: str, nodes: Nodes) -> "MemoryState":
        of_pod = {
            name: blocks for name, blocks in self.blocks.get(uid, {}).items() if name != container
        }
        others = {name: found for name, found in self.blocks.items() if name != uid}
        return MemoryState(nodes, {**others, uid: of_pod} if of_pod else others)


def assign(nodes: Nodes, some: tuple[int, ...], resource: str, size: int) -> Nodes:
    """The first of them is filled up before the next."""
    found = dict(nodes)
    for number in some:
        node = found[number]
        table = node.tables[resource]
        taken = min(size, max(0, table.free))
        size -= taken
        changed = replace(table, reserved=table.reserved + taken, free=table.free - taken)
        tables = {**node.tables, resource: changed}
        found[number] = NodeMemory(some, tables, node.assignments + 1)
    return found


def release(nodes: Nodes, block: Block) -> Nodes:
    found, size = dict(nodes), block.size
    for number in block.nodes:
        node = found[number]
        table = node.tables[block.resource]
        given = min(size, table.reserved)
        size -= given
        changed = replace(table, reserved=table.reserved - given, free=table.free + given)
        tables = {**node.tables, block.resource: changed}
        left = node.assignments - 1
        found[number] = NodeMemory(node.cells if left else (number,), tables, left)
    return found


def checked(state: MemoryState, initial: Nodes) -> None:
    """May this have been stored on this machine? Raises BadMemoryState."""
    for uid, of_pod in state.blocks.items():
        for container, blocks in of_pod.items():
            for block in blocks:
                where = f"[memorymanager] (pod: {uid}, container: {container}) the memory"
                if any(number not in initial for number in block.nodes):
                    raise BadMemoryState(f"{where} assignment uses the NUMA that does not exist")
                if any(block.resource not in initial[n].tables for n in block.nodes):
                    raise BadMemoryState(
                        f"{where} assignment uses memory resource that does not exist"
                    )
    if _machine(state.nodes) != _machine(initial):
        raise BadMemoryState(
            "[memorymanager] the expected machine state is different from the real one"
        )


def _machine(nodes: Nodes) -> object:
    """What does not change with who has what. Upstream recounts the rest as well, and refuses its
    own books where nodes served a container alone after they had served one together."""
    return {
        number: {
            name: (table.total, table.system_reserved, table.allocatable)
            for name, table in node.tables.items()
        }
        for number, node in nodes.items()
    }
