"""Ingress in the box: two listeners in front of the controllers.

Job: put the parts together; start and stop them.
Owner: `sampan up --ingress`.
"""

import random
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from sampan.api.objects import Obj
from sampan.client.contract import Client
from sampan.core import tls
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import HttpClient
from sampan.core.http.origin import Origin
from sampan.core.http.server import Server
from sampan.network.ingress.certificates import Certificates
from sampan.network.ingress.forwarding import CONNECT_SECONDS, LIMITS, Forwarding, Listener
from sampan.network.ingress.served import Served

GRACE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class IngressSettings:
    http: socket.socket  # bound
    https: socket.socket
    addresses: Sequence[Obj]  # of status.loadBalancer.ingress, without ports
    default_certificate: Callable[[], ssl.SSLContext]
    place_of: Callable[[Origin], Awaitable[Origin]] | None = None  # where an endpoint is found


class Ingress:
    def __init__(
        self, settings: IngressSettings, client: Client, clock: Clock, rng: random.Random
    ) -> None:
        self._settings = settings
        ports = [settings.http.getsockname()[1], settings.https.getsockname()[1]]
        told = [{"port": port, "protocol": "TCP"} for port in ports]
        addresses = [{**address, "ports": told} for address in settings.addresses]
        by_scheme = {"http": ports[0], "https": ports[1]}
        self._served = Served(client, addresses, by_scheme, clock, rng)
        # As nginx: whose certificate a backend has, is not checked.
        self._http = HttpClient(
            ssl_context=tls.client_context(verify=False), connect_seconds=CONNECT_SECONDS,
            place_of=settings.place_of,
        )  # fmt: skip
        forwarding = Forwarding(self._served.find, self._http, rng)
        certificates = Certificates(
            lambda: self._served, self._served.secret, settings.default_certificate
        )
        self._servers = [
            Server(
                partial(forwarding.answer, Listener(scheme, port)),
                ssl_context=context, limits=LIMITS, clock=clock, name="ingress",
            )
            for scheme, port, context in (
                ("http", ports[0], None),
                ("https", ports[1], certificates.context()),
            )
        ]  # fmt: skip

    async def start(self) -> None:
        """Returns when every Ingress and HTTPRoute that there is is served."""
        await self._served.start()
        for server, listening in zip(
            self._servers, (self._settings.http, self._settings.https), strict=True
        ):
            await server.start_on(listening)

    async def stop(self) -> None:
        for server in self._servers:
            await server.stop(GRACE_SECONDS)
        await self._served.stop()
        await self._http.close()
