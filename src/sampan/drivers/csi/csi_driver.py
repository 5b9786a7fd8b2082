"""csi.sampan.dev: a small CSI driver of directories and loop devices.

Job: serve CSI's three services at one socket, and register at the kubelet where that is asked for.
Owner: cmd/ runs one as a process of its own.
"""

import contextlib
import os

from sampan.core.clock import Clock
from sampan.core.grpc.socket_server import Methods, SocketServer
from sampan.core.lock_per_key import LockPerKey
from sampan.drivers.csi.controller import Controller
from sampan.drivers.csi.identity import Identity
from sampan.drivers.csi.node import Node
from sampan.drivers.csi.records import Records
from sampan.drivers.csi.settings import DriverSettings
from sampan.drivers.csi.snapshots import Snapshots
from sampan.drivers.faults import Faults
from sampan.drivers.registrar import Registrar
from sampan.plugins.registration import CSI_PLUGIN, Introduction

VERSIONS = ("1.0.0",)


def driver_methods(settings: DriverSettings, clock: Clock) -> Methods:
    """All three services."""
    records, locks = Records(settings.root), LockPerKey()
    records.sweep()
    services = (
        Identity(settings),
        Controller(settings, records, locks),
        Snapshots(records, locks, clock),
        Node(settings, records),
    )
    methods = {path: each for service in services for path, each in service.methods().items()}
    return Faults(settings.faults).among(methods)


class CsiDriver:
    def __init__(
        self, settings: DriverSettings, endpoint: str, registration: str, clock: Clock
    ) -> None:
        """`endpoint`: its socket; `registration`: the one in plugins_registry, or empty."""
        os.makedirs(os.path.dirname(endpoint), exist_ok=True)
        self._server = SocketServer(endpoint, driver_methods(settings, clock))
        self._registrar: Registrar | None = None
        if registration:
            said = Introduction(CSI_PLUGIN, settings.name, endpoint, VERSIONS)
            self._registrar = Registrar(registration, said)

    async def start(self) -> None:
        """Raises OSError."""
        await self._server.start()
        if self._registrar is not None:
            await self._registrar.start()

    async def stop(self) -> None:
        with contextlib.suppress(OSError):
            if self._registrar is not None:
                await self._registrar.stop()
        await self._server.stop(1.0)

    def hurry(self) -> None:
        """It has nobody to wait for."""
