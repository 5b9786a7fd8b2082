"""The kubelets' HTTP servers of simulated nodes: each starts with the first question to it.

Job: a node's name → where its server listens in this process.
Owner: SimulatedNodes.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from sampan.cmd.cluster.nodes import SERVER_GRACE_SECONDS
from sampan.core.http.origin import Origin
from sampan.core.tasks import all_of

if TYPE_CHECKING:
    from sampan.kubelet.server.http_server import KubeletServer


class SimulatedServers:
    def __init__(self, make: "Callable[[str], KubeletServer]") -> None:
        self._make = make
        self._servers: dict[str, tuple[KubeletServer, int]] = {}  # those that somebody asked
        self._starting = asyncio.Lock()
        self.tls: ssl.SSLContext | None = None  # to be set before anybody asks

    async def place_of(self, node: str) -> Origin:
        async with self._starting:
            if node not in self._servers:
                assert self.tls is not None
                server = self._make(node)
                port = await server.start("127.0.0.1", 0, self.tls)
                self._servers[node] = (server, port)
        return Origin("https", "127.0.0.1", self._servers[node][1])

    async def stop_one(self, node: str) -> None:
        server = self._servers.pop(node, None)
        if server is not None:
            await server[0].stop(SERVER_GRACE_SECONDS)

    async def stop(self) -> None:
        await all_of(server.stop(SERVER_GRACE_SECONDS) for server, _ in self._servers.values())

    def forget(self) -> None:
        self._servers.clear()
