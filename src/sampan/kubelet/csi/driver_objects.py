"""CSIDriver objects, as this node sees them.

Job: what the API says of a driver; followed from the first question on.
Owner: CsiVolumes; most nodes never ask.
"""

import asyncio
from collections.abc import Callable

from sampan.api.objects import Obj, name_of
from sampan.api.resources import CSI_DRIVERS
from sampan.client.contract import Client
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.clock import Clock
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.csi.csi_volume import CsiDriver, csi_driver

SYNC_SECONDS = 60.0


class DriverObjects:
    def __init__(self, client: Client, *, tasks: Tasks, clock: Clock) -> None:
        self._informer = Informer(client, Selection(CSI_DRIVERS), clock=clock)
        self._tasks, self._begun = tasks, False
        self.changed: Callable[[str], None] = lambda _name: None

    def begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._informer.on_change(self._heard)
            self._tasks.supervise("CSIDrivers", self._informer.run)

    async def get(self, name: str) -> CsiDriver:
        """Raises VolumeFailure."""
        self.begin()
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                await self._informer.synced()
        except TimeoutError as error:
            raise VolumeFailure("CSIDrivers were not listed in time") from error
        return csi_driver(self._informer.cache.get(name))

    def known(self, name: str) -> CsiDriver:
        """As far as is known by now."""
        return csi_driver(self._informer.cache.get(name) if self._begun else None)

    def _heard(self, old: Obj | None, new: Obj | None) -> None:
        changed = new if new is not None else old
        if changed is not None:
            self.changed(name_of(changed))
