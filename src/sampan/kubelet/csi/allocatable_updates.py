"""Allocatable volumes of CSI drivers, read again with each period of their CSIDriver.

Job: for each registered driver whose CSIDriver names a period (nodeAllocatableUpdatePeriodSeconds),
    one task that asks it so often.
Owner: NodePlugins.
"""

import asyncio

from sampan.core.clock import Clock
from sampan.core.tasks import Tasks
from sampan.kubelet.csi.csi_drivers import CsiDrivers
from sampan.kubelet.csi.driver_objects import DriverObjects


class AllocatableUpdates:
    def __init__(
        self, drivers: CsiDrivers, objects: DriverObjects, *, tasks: Tasks, clock: Clock
    ) -> None:
        self._drivers, self._objects, self._tasks, self._clock = drivers, objects, tasks, clock
        self._running: dict[str, tuple[int, asyncio.Task[None]]] = {}  # with their periods

    def look(self, name: str) -> None:
        """The driver came or went, or its CSIDriver has changed."""
        there = name in self._drivers.names()
        seconds = self._objects.known(name).allocatable_seconds if there else 0
        running = self._running.get(name)
        if running is not None and running[0] != seconds:
            running[1].cancel()
            del self._running[name]
        if seconds and name not in self._running:
            task = self._tasks.start(f"limits of {name}", self._ask(name, seconds))
            self._running[name] = (seconds, task)

    async def _ask(self, name: str, seconds: int) -> None:
        while True:
            await self._clock.sleep(seconds)
            await self._drivers.ask_again(name)
