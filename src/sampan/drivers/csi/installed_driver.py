"""csi.sampan.dev with all that a cluster needs to use it.

Job: the driver, its objects in the API, its sidecars: started together, stopped in the other order.
Owner: cmd/ runs one as a process of its own.
"""

from collections.abc import Callable

from sampan.api.errors import ApiError
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.drivers.csi.csi_driver import CsiDriver
from sampan.drivers.csi.objects import install, snapshot_class
from sampan.drivers.csi.settings import DriverSettings
from sampan.drivers.sidecars.sidecars import Sidecars, at_socket
from sampan.drivers.sidecars.snapshot_kinds import CLASSES

log = get_logger(__name__)

RETRY_SECONDS, RETRIES = 0.5, 120


class InstalledDriver:
    def __init__(
        self,
        settings: DriverSettings,
        endpoint: str,
        registration: str,
        client: Callable[[], Client],
        clock: Clock,
    ) -> None:
        self._settings, self._make_client, self._clock = settings, client, clock
        self._driver = CsiDriver(settings, endpoint, registration, clock)
        self._sidecars = Sidecars(at_socket(endpoint), client, settings.node_id, clock)

    async def start(self) -> None:
        """Raises OSError."""
        await self._driver.start()
        await self._install()
        await self._sidecars.start()

    async def stop(self) -> None:
        await self._sidecars.stop()
        await self._driver.stop()

    def hurry(self) -> None:
        """They have nobody to wait for."""

    async def _install(self) -> None:
        client = self._make_client()
        for left in reversed(range(RETRIES)):
            try:
                await install(self._settings, client)
                await self._sidecars.define_snapshots(client)
                await client.create(CLASSES, snapshot_class(self._settings))
                return
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    return
                log.info("objects of the driver were not written, trying again", error=error)
                if not left:
                    raise
                await self._clock.sleep(RETRY_SECONDS)
