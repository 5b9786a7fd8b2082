"""As whom a node's network asks the API: a service account of its own, not the kubelet.

Job: a token of that account that is bound to the Node, asked for by the kubelet.
Invariant: a token is renewed when 80 % of its life is over, or when the server does not know it
    (the Node was made anew); nobody waits for that but whoever has something to ask.
"""

import asyncio

from sampan.api.objects import Obj, seconds_of
from sampan.api.resources import SERVICE_ACCOUNTS
from sampan.api.rules.account_token import NETWORK_ACCOUNT, NETWORK_NAMESPACE
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.http import Headers

USER = f"system:serviceaccount:{NETWORK_NAMESPACE}:{NETWORK_ACCOUNT}"
LIFE_SECONDS = 3600
RENEW_AFTER = 0.8


class NetworkIdentity:
    """Implements client.rest.Identity. Owner: the node's process."""

    def __init__(self, kubelet: Client, node_name: str, clock: Clock) -> None:
        self._kubelet, self._node_name, self._clock = kubelet, node_name, clock
        self._token, self._due = "", 0.0
        self._asking = asyncio.Lock()  # several informers ask at once; one request is enough

    async def headers(self) -> Headers:
        async with self._asking:
            now = self._clock.now()
            if now >= self._due:
                self._token, expires = await self._ask()
                self._due = now + (expires - now) * RENEW_AFTER
        return [("authorization", f"Bearer {self._token}")]

    def refused(self) -> None:
        self._due = 0.0

    async def _ask(self) -> tuple[str, float]:
        status = (
            await self._kubelet.create(
                SERVICE_ACCOUNTS,
                token_request(self._node_name),
                NETWORK_NAMESPACE,
                subresource="token",
                name=NETWORK_ACCOUNT,
            )
        )["status"]
        return status["token"], seconds_of(status["expirationTimestamp"])


def token_request(node_name: str) -> Obj:
    bound = {"apiVersion": "v1", "kind": "Node", "name": node_name}
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": LIFE_SECONDS, "boundObjectRef": bound},
    }
