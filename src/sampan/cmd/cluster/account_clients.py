"""Clients of service accounts: each controller calls the API under a name of its own.

Job: accounts in kube-system, made where they are missing; tokens for them, renewed in time.
Invariant: no request carries the process's own certificate: who it is, is the token alone.
As upstream's --use-service-account-credentials.
"""

import random
from collections.abc import Iterable
from dataclasses import replace

from sampan.api.errors import AlreadyExists, ApiError, NotFound
from sampan.api.objects import Obj
from sampan.api.resources import SERVICE_ACCOUNTS
from sampan.client.kubeconfig import Connection
from sampan.client.rest import Caller, RestClient, context_of
from sampan.core.clock import Clock
from sampan.core.http import Headers
from sampan.core.http_client import HttpClient
from sampan.core.log import get_logger
from sampan.core.tasks import all_of

NAMESPACE = "kube-system"
TOKEN_SECONDS = 3600
RENEW_AFTER_SECONDS = 0.8 * TOKEN_SECONDS
LOOK_SECONDS = 60.0
RETRY_SECONDS = 1.0
log = get_logger(__name__)


class AccountClients:
    def __init__(self, client: RestClient, connection: Connection, clock: Clock) -> None:
        """`client` may make accounts and tokens; `connection` says where the API is."""
        self._client, self._connection, self._clock = client, connection, clock
        nobody = replace(connection, certificate=None, key=None)
        # One pool of connections for all of them.
        self._http = HttpClient(
            ssl_context=context_of(nobody), server_hostname=connection.tls_server_name or None
        )
        self._tokens: dict[str, str] = {}
        self._obtained = 0.0

    async def obtain(self, accounts: Iterable[str]) -> None:
        """Returns when each has a token, however long the API takes."""
        wanted = sorted(set(accounts))
        while True:
            try:
                await all_of(self._renew(account) for account in wanted)
            except ApiError as error:
                log.warning("no tokens for the controllers yet", error=error)
                await self._clock.sleep(RETRY_SECONDS)
                continue
            self._obtained = self._clock.monotonic()
            return

    async def keep_fresh(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            if self._clock.monotonic() - self._obtained > RENEW_AFTER_SECONDS:
                await self.obtain(self._tokens)

    def of(self, account: str) -> RestClient:
        """Without a token it is nobody: `obtain` comes first."""

        def credentials() -> Headers:
            return [("authorization", f"Bearer {self._tokens[account]}")]

        caller = Caller(credentials, f"sampan-kube-controller-manager/{account}")
        return RestClient(
            self._http, self._connection.server, caller, clock=self._clock, rng=random.Random()
        )

    async def close(self) -> None:
        await self._http.close()

    async def _renew(self, account: str) -> None:
        try:
            answer = await self._request_token(account)
        except NotFound:
            await self._ensure(account)
            answer = await self._request_token(account)
        self._tokens[account] = str(answer["status"]["token"])

    async def _request_token(self, account: str) -> Obj:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        return await self._client.create(
            SERVICE_ACCOUNTS, request, NAMESPACE, subresource="token", name=account
        )

    async def _ensure(self, account: str) -> None:
        obj = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account, "namespace": NAMESPACE},
        }
        try:
            await self._client.create(SERVICE_ACCOUNTS, obj, NAMESPACE)
        except AlreadyExists:
            return
