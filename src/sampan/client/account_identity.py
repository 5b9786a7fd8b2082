"""A service account as the identity of a client, by tokens that another client requests.

Job: a token of the account, when a request needs one.
Invariant: a token is renewed when 80 % of its life is over, or when the server does not know it
    (what it was bound to, or the account, was made anew); nobody waits for that but whoever has
    something to ask.
Owner: the client whose identity it is.
"""

import asyncio

from sampan.api.errors import AlreadyExists, NotFound
from sampan.api.objects import Obj, seconds_of
from sampan.api.resources import SERVICE_ACCOUNTS
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Headers

LIFE_SECONDS = 3600
RENEW_AFTER = 0.8


@dataclass(frozen=True, slots=True)
class Account:
    namespace: str
    name: str
    bound_node: str = ""  # its tokens end with this Node
    is_ours: bool = False  # made where it is missing


class AccountIdentity:
    """Implements client.rest.Identity."""

    def __init__(self, asker: Client, account: Account, clock: Clock) -> None:
        """`asker` may have tokens of the account."""
        self._asker, self._account, self._clock = asker, account, clock
        self._token, self._due = "", 0.0
        self._asking = asyncio.Lock()  # several informers ask at once; one request is enough

    async def headers(self) -> Headers:
        async with self._asking:
            now = self._clock.now()
            if now >= self._due:
                self._token, expires = await self._new_token()
                self._due = now + (expires - now) * RENEW_AFTER
        return [("authorization", f"Bearer {self._token}")]

    def refused(self) -> None:
        self._due = 0.0

    async def _new_token(self) -> tuple[str, float]:
        try:
            return await self._ask()
        except NotFound:
            if not self._account.is_ours:
                raise
        await self._make_account()
        return await self._ask()

    async def _ask(self) -> tuple[str, float]:
        account = self._account
        status = (
            await self._asker.create(
                SERVICE_ACCOUNTS,
                token_request(account),
                account.namespace,
                subresource="token",
                name=account.name,
            )
        )["status"]
        return status["token"], seconds_of(status["expirationTimestamp"])

    async def _make_account(self) -> None:
        account = self._account
        obj = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account.name, "namespace": account.namespace},
        }
        try:
            await self._asker.create(SERVICE_ACCOUNTS, obj, account.namespace)
        except AlreadyExists:
            return


def token_request(account: Account) -> Obj:
    spec: Obj = {"expirationSeconds": LIFE_SECONDS}
    if account.bound_node:
        node = {"apiVersion": "v1", "kind": "Node", "name": account.bound_node}
        spec["boundObjectRef"] = node
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
