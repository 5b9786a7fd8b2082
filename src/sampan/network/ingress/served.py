"""Routing by host: HTTPRoutes of our Gateways first, then Ingresses.

Job: the two controllers over one set of informers; start and stop them.
Owner: `sampan up --ingress`; the kit's clusters with `ingress`.
"""

import random
from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.http.messages import Response
from sampan.network.gateway.controller import GatewayController, GatewaySettings
from sampan.network.ingress.backends import Unavailable
from sampan.network.ingress.controller import IngressController
from sampan.network.ingress.forwarding import Asked, Way


class Served:
    def __init__(
        self, client: Client, addresses: Sequence[Obj], ports: Mapping[str, int], clock: Clock,
        rng: random.Random,
    ) -> None:  # fmt: skip
        """`addresses`: as statuses say them; `ports`: by scheme."""
        self._informers = Informers(client, clock=clock, rng=rng)
        self._ingresses = IngressController(client, self._informers, addresses, clock, rng)
        settings = GatewaySettings(addresses, ports)
        self._gateways = GatewayController(
            settings, client, self._informers, self._ingresses.endpoints, clock, rng
        )

    async def start(self) -> None:
        """Returns when every Ingress and HTTPRoute that there is is known."""
        self._informers.start()
        await self._informers.synced()
        self._ingresses.start()
        await self._gateways.start()

    async def stop(self) -> None:
        await self._gateways.stop()
        await self._ingresses.stop()
        await self._informers.stop()

    def find(self, asked: Asked) -> Way | Unavailable | Response:
        found = self._gateways.find(asked)
        return self._ingresses.find(asked) if found is None else found

    # Certificates.

    def secret_for(self, server_name: str) -> str | None:
        found = self._gateways.table().secret_for(server_name)
        return self._ingresses.table().secret_for(server_name) if found is None else found

    def secret_keys(self) -> frozenset[str]:
        return self._gateways.table().secret_keys() | self._ingresses.table().secret_keys()

    def secret(self, key: str) -> Obj | None:
        return self._ingresses.secret(key)
