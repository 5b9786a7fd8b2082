"""HTTP endpoints of a service proxy that is a process of its own.

Job: /healthz and /livez at one address, /metrics and /proxyMode at another, as kube-proxy's.
Invariant: nothing listens that was not asked for.
"""

from typing import TYPE_CHECKING

import orjson

from sampan.api.objects import time_text
from sampan.cmd.cluster.served_api import listening_socket
from sampan.core.clock import Clock
from sampan.core.http.messages import Reply, Request, Response
from sampan.core.http.server import Server
from sampan.core.metrics import Metrics

if TYPE_CHECKING:
    from sampan.network.services.proxy import ServiceProxy

GRACE_SECONDS = 0.5
MODE = "nftables"
_JSON = (("content-type", "application/json"), ("x-content-type-options", "nosniff"))
_TEXT = (("content-type", "text/plain; version=0.0.4"),)
_NOT_FOUND = Response(404, _TEXT, b"404 page not found\n")
Address = tuple[str, int]


class ProxyHealthz:
    def __init__(self, proxy: "ServiceProxy", metrics: Metrics, clock: Clock) -> None:
        self._proxy, self._metrics, self._clock = proxy, metrics, clock
        self._servers: list[Server] = []

    async def open(self, health: Address | None, metrics: Address | None) -> None:
        """Raises CannotStart."""
        if health is not None:
            server = Server(self.say_health, clock=self._clock, name="proxy health")
            await server.start_on(listening_socket(*health, "--healthz-bind-address"))
            self._servers.append(server)
        if metrics is not None:
            server = Server(self.say_metrics, clock=self._clock, name="proxy metrics")
            await server.start_on(listening_socket(*metrics, "--metrics-bind-address"))
            self._servers.append(server)

    async def close(self) -> None:
        for server in self._servers:
            await server.stop(GRACE_SECONDS)

    async def say_health(self, request: Request) -> Reply:
        if request.path not in ("/healthz", "/livez"):
            return _NOT_FOUND
        body = {
            "lastUpdated": time_text(self._proxy.last_applied),
            "currentTime": time_text(self._clock.now()),
            "nodeEligible": True,
        }
        return Response(200 if self._proxy.healthy else 503, _JSON, orjson.dumps(body))

    async def say_metrics(self, request: Request) -> Reply:
        match request.path:
            case "/metrics":
                return Response(200, _TEXT, self._metrics.render().encode())
            case "/proxyMode":
                return Response(200, _TEXT, MODE.encode())
        return _NOT_FOUND
