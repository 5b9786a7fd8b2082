"""Memory manager: Guaranteed containers with memory of certain NUMA nodes.

Job: give blocks of memory by the Static policy, keep that on disk, say whose nodes are which.
Invariant: what is given is on disk before its container starts.
Owner: ResourceAdmission asks it for containers.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sampan.api.objects import Obj, uid_of
from sampan.api.rules.pods import init_containers, is_sidecar
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.resources_hook import Grants, unexpected
from sampan.kubelet.resource_managers import memory_policy as policy
from sampan.kubelet.resource_managers.cpu_sets import listed
from sampan.kubelet.resource_managers.machine_topology import NumaMemory
from sampan.kubelet.resource_managers.manager_settings import MEMORY_STATE, MEMORY_STATIC
from sampan.kubelet.resource_managers.memory_policy import NotEnoughMemory, Reusable
from sampan.kubelet.resource_managers.memory_state import (
    BadMemoryState,
    Block,
    Blocks,
    MemoryState,
    NodeMemory,
    Nodes,
    Table,
    checked,
)
from sampan.kubelet.resource_managers.numa import Hint, Hints
from sampan.kubelet.resource_managers.state_file import BadState, StateFile, read_state

MANAGER, FILE = MEMORY_STATE

Reservations = Mapping[int, Mapping[str, int]]  # NUMA node → resource → bytes


def initial_nodes(memory: Mapping[int, NumaMemory], reserved: Reservations) -> Nodes:
    found = {}
    for number, there in memory.items():
        of_node = reserved.get(number, {})
        tables = {
            f"hugepages-{size}": _table(total, total, of_node.get(f"hugepages-{size}", 0))
            for size, total in there.hugepages.items()
        }
        plain = there.total_bytes - sum(there.hugepages.values())
        tables["memory"] = _table(there.total_bytes, plain, of_node.get("memory", 0))
        found[number] = NodeMemory((number,), tables)
    return found


def _table(total: int, usable: int, reserved: int) -> Table:
    return Table(total, reserved, usable - reserved, 0, usable - reserved)


class MemoryManager:
    def __init__(self, nodes: Nodes, root_dir: str, *, tasks: Tasks, metrics: Metrics) -> None:
        """`nodes`: as long as nobody has anything. Raises BadState."""
        self._initial, self._path = nodes, f"{root_dir}/{FILE}"
        self._file = StateFile(self._path, MEMORY_STATIC, self._said, tasks)
        self._reusable: tuple[str, Reusable] = ("", {})  # of the pod that is admitted
        self._state = self._restored()
        self._pinned, self._failed = (
            metrics.counter(f"kubelet_memory_manager_pinning_{what}_total", text)
            for what, text in (
                ("requests", "The number of memory pages allocations which required pinning."),
                ("errors", "The number of memory pages allocations which required pinning that "
                           "failed."),
            )
        )  # fmt: skip

    def _restored(self) -> MemoryState:
        written = read_state(MANAGER, self._path, MEMORY_STATIC)
        if written is None:
            return MemoryState(self._initial)
        try:
            state = _state_of(written)
            checked(state, self._initial)
        except (BadMemoryState, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadState(MANAGER, self._path, error) from error
        return state

    def concerns(self, pod: Obj) -> bool:
        return policy.takes_part(pod)

    def blocks_of(self, uid: str, container: str) -> Blocks:
        return self._state.of(uid, container)

    def allocatable(self) -> list[Block]:
        return [
            Block((number,), resource, table.allocatable)
            for number, node in self._state.nodes.items()
            for resource, table in node.tables.items()
            if table.allocatable
        ]

    def container_hints(self, pod: Obj, container: Obj) -> Hints:
        return policy.container_hints(self._state, pod, container, self._reusable_of(pod))

    def pod_hints(self, pod: Obj) -> Hints:
        return policy.pod_hints(self._state, pod, self._reusable_of(pod))

    def _reusable_of(self, pod: Obj) -> Reusable:
        return self._reusable[1] if self._reusable[0] == uid_of(pod) else {}

    async def allocate(self, pod: Obj, container: Obj, affinity: Hint) -> None:
        """Raises PodRefused."""
        if not policy.takes_part(pod):
            return
        self._pinned.add()
        try:
            given = policy.allocated(self._state, pod, container, affinity, self._reusable_of(pod))
            before, self._state = self._state, given.state
            self._reusable = (uid_of(pod), given.reusable)
            if before is not given.state:
                await self._file.stored()
        except (NotEnoughMemory, OSError) as error:
            self._failed.add()
            raise unexpected(error) from error

    async def grants(self, pod: Obj, container: Obj) -> Grants | None:
        self._drop_ended(pod, container["name"])
        blocks = self._state.of(uid_of(pod), container["name"])
        nodes = {node for block in blocks for node in block.nodes}
        return Grants(memory_nodes=listed(nodes)) if nodes else None

    def _drop_ended(self, pod: Obj, name: str) -> None:
        """The init containers before it have ended: as upstream, what they had is given back when
        the next one starts."""
        state = self._state
        for earlier in init_containers(pod):
            if earlier["name"] == name:
                break
            if not is_sidecar(earlier) and state.of(uid_of(pod), earlier["name"]):
                state = policy.without_container(state, uid_of(pod), earlier["name"])
        if state is not self._state:
            self._state = state
            self._file.store_soon()

    def release(self, uid: str) -> None:
        if uid in self._state.blocks:
            self._state = policy.without_pod(self._state, uid)
            self._file.store_soon()

    def keep_only(self, is_known: Callable[[str], bool]) -> None:
        for uid in [uid for uid in self._state.blocks if not is_known(uid)]:
            self.release(uid)

    def _said(self) -> dict[str, Any]:
        return {
            "machineState": {
                str(number): {
                    "numberOfAssignments": node.assignments,
                    "memoryMap": {
                        name: {
                            "total": table.total,
                            "systemReserved": table.system_reserved,
                            "allocatable": table.allocatable,
                            "reserved": table.reserved,
                            "free": table.free,
                        }
                        for name, table in node.tables.items()
                    },
                    "cells": list(node.cells),
                }
                for number, node in self._state.nodes.items()
            },
            "entries": {
                uid: {
                    name: [
                        {
                            "numaAffinity": list(block.nodes),
                            "type": block.resource,
                            "size": block.size,
                        }
                        for block in blocks
                    ]
                    for name, blocks in of_pod.items()
                }
                for uid, of_pod in self._state.blocks.items()
            },
        }


def _state_of(written: Mapping[str, Any]) -> MemoryState:
    """Raises ValueError, KeyError, TypeError, AttributeError."""
    nodes = {
        int(number): NodeMemory(
            tuple(node["cells"]),
            {
                name: Table(
                    table["total"],
                    table["systemReserved"],
                    table["allocatable"],
                    table["reserved"],
                    table["free"],
                )
                for name, table in node["memoryMap"].items()
            },
            node["numberOfAssignments"],
        )
        for number, node in written["machineState"].items()
    }
    blocks = {
        uid: {
            name: tuple(
                Block(tuple(item["numaAffinity"]), item["type"], item["size"]) for item in items
            )
            for name, items in of_pod.items()
        }
        for uid, of_pod in (written.get("entries") or {}).items()
    }
    return MemoryState(nodes, blocks)
