"""Health checks of Services with externalTrafficPolicy: Local: is an endpoint on this node?

Job: a small HTTP server for each healthCheckNodePort, as kube-proxy's, for load balancers outside.
Invariant: there is one for each such Service, at its port, and none for others.
Owner: ServiceProxy.
"""

from collections.abc import Mapping, Sequence

import orjson

from sampan.api.objects import Obj, key_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Reply, Request, Response
from sampan.core.http.server import Server
from sampan.core.log import get_logger

# Node ports are on every address, and so is this: the second is both families'.
ADDRESSES = {"ip": "0.0.0.0", "ip6": "::"}
GRACE_SECONDS = 0.5
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    service: str  # namespace/name
    port: int


def check_of(service: Obj) -> Check | None:
    spec = service.get("spec") or {}
    port = int(spec.get("healthCheckNodePort") or 0)
    if spec.get("type") != "LoadBalancer" or spec.get("externalTrafficPolicy") != "Local":
        return None
    return Check(key_of(service), port) if port else None


def answer(check: Check, local_endpoints: int) -> Response:
    namespace, _, name = check.service.partition("/")
    body = {
        "service": {"namespace": namespace, "name": name},
        "localEndpoints": local_endpoints,
        "serviceProxyHealthy": True,
    }
    headers = (
        ("Content-Type", "application/json"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Load-Balancing-Endpoint-Weight", str(local_endpoints)),
    )
    return Response(200 if local_endpoints else 503, headers, orjson.dumps(body))


class HealthChecks:
    def __init__(self, families: Sequence[str] = ("ip",)) -> None:
        self._address = ADDRESSES["ip6" if "ip6" in families else "ip"]
        self._servers: dict[str, tuple[Check, Server]] = {}
        self._counts: dict[str, int] = {}

    async def keep(self, wanted: Mapping[str, tuple[Check, int]]) -> None:
        """By Service: what it wants, and how many endpoints it has here."""
        self._counts = {key: count for key, (_, count) in wanted.items()}
        for key, (check, server) in list(self._servers.items()):
            if key not in wanted or wanted[key][0] != check:
                del self._servers[key]
                await server.stop(GRACE_SECONDS)
        for key, (check, _) in wanted.items():
            if key not in self._servers:
                await self._start(key, check)

    async def close(self) -> None:
        await self.keep({})

    async def _start(self, key: str, check: Check) -> None:
        async def handle(_request: Request) -> Reply:
            return answer(check, self._counts.get(key, 0))

        server = Server(handle, name="health check")
        try:
            await server.start(self._address, check.port)
        except OSError as error:
            log.warning("no health check for a Service", service=key, port=check.port, error=error)
            return
        self._servers[key] = (check, server)
