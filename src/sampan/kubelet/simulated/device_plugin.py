"""Device plugins of a simulated node: devices without hardware, healthy or not.

Job: be a plugin for the device manager, in this process; have an allocation fail as a pod's script
    says.
Owner: SimulatedPlugins.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from sampan.api.objects import Obj
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.status_codes import status_text
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.resources_hook import unexpected
from sampan.kubelet.device_manager.device_manager import DeviceManager
from sampan.kubelet.resource_managers.numa import Hint, NumaNodes
from sampan.kubelet.simulated.pretence import PretendedPlugin


@dataclass(frozen=True, slots=True)
class _Nowhere:
    nodes: tuple[()] = ()


@dataclass(frozen=True, slots=True)
class _Device:
    """In the protocol's words."""

    ID: str
    health: str
    topology: _Nowhere = _Nowhere()


@dataclass(frozen=True, slots=True)
class _Listed:
    devices: Sequence[_Device]


class PretendedPluginClient:
    def __init__(self, plugin: PretendedPlugin, sick: frozenset[str]) -> None:
        self._plugin, self._sick = plugin, sick
        self._changed = asyncio.Event()

    def tell(self, sick: frozenset[str]) -> None:
        if sick != self._sick:
            self._sick = sick
            self._changed.set()

    async def watch(self) -> AsyncIterator[_Listed]:
        while True:
            self._changed.clear()
            yield _Listed([
                _Device(name, "Unhealthy" if name in self._sick else "Healthy")
                for name in self._plugin.ids
            ])  # fmt: skip
            await self._changed.wait()

    async def preferred(
        self, _available: Sequence[str], _included: Sequence[str], _size: int
    ) -> list[str]:
        return []

    async def allocate(self, _devices: Sequence[str]) -> bytes:
        return b""  # nothing for the container

    async def pre_start(self, _devices: Sequence[str]) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""


class PretendedDevices(DeviceManager):
    def __init__(
        self,
        why_not: Callable[[Obj], str | None],
        root_dir: str,
        *,
        tasks: Tasks,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """`why_not`: this time; None: a pod gets what it asks for, if there is enough."""
        super().__init__(root_dir, NumaNodes(), tasks=tasks, clock=clock, metrics=metrics)
        self._why_not = why_not

    async def allocate(self, pod: Obj, container: Obj, affinity: Hint) -> None:
        why = self._why_not(pod) if self.concerns(pod) else None
        if why is not None:
            raise unexpected(status_text("UNKNOWN", why))
        await super().allocate(pod, container, affinity)
