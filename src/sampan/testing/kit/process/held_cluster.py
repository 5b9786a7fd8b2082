"""What the process of a test cluster has in its hand, whatever its nodes are.

Job: the contract between a cluster's parts and the commands that a test gives to its process.
"""

from typing import Protocol

from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.virtual_time.outside import Outside
from sampan.kubelet.contracts.runtime import Runtime
from sampan.store.contract import Store
from sampan.testing.kit.process.faulty_edge import FaultyEdge
from sampan.testing.kit.process.guarded_processes import GuardedProcesses
from sampan.testing.kit.process.severed import SeveredBackend
from sampan.testing.kit.process.write_log import WriteLog


@dataclass(frozen=True, slots=True)
class Failure:
    """How a container ends; None and empty: as it ends here when somebody kills it."""

    exit_code: int | None = None
    reason: str = ""


class HeldCluster(Protocol):
    clock: Clock
    ways: dict[str, SeveredBackend]  # of nodes to the API
    guarded: GuardedProcesses
    writes: WriteLog | None  # once somebody asked for it

    @property
    def outside(self) -> Outside:
        """Its clients."""

    @property
    def edge(self) -> FaultyEdge: ...

    @property
    def store(self) -> Store: ...

    def admin(self) -> Client: ...

    def runtime_of(self, node: str) -> Runtime | None:
        """Who runs the containers there."""

    async def end_container(self, node: str, container_id: str, failure: Failure) -> None:
        """As if of its own. Raises ValueError where it cannot end like that."""

    async def kill_node(self, name: str) -> None:
        """Raises ValueError where the machine is needed."""

    async def note_silence(self, node: str) -> None:
        """Its way to the API was cut just now."""
