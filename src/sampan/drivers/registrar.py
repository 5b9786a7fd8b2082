"""A plugin's own registration: a socket in plugins_registry, for as long as the plugin lives.

Job: introduce the plugin to the kubelet, and say what became of that.
Owner: a driver's process.
"""

import os

from sampan.core.grpc.socket_server import SocketServer
from sampan.core.log import get_logger
from sampan.plugins.registration import Introduction, registration_methods

log = get_logger(__name__)


class Registrar:
    def __init__(self, socket: str, introduction: Introduction) -> None:
        self._introduction = introduction
        os.makedirs(os.path.dirname(socket), exist_ok=True)
        self._server = SocketServer(socket, registration_methods(introduction, self._told))

    async def start(self) -> None:
        """Raises OSError."""
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()

    async def _told(self, registered: bool, why: str) -> None:
        if registered:
            log.info("plugin is registered", name=self._introduction.name)
        else:
            log.warning("plugin was refused", name=self._introduction.name, why=why)
