"""cmd/cluster/account_clients.py: missing accounts are made, tokens are renewed in time."""

import asyncio

from sampan.api.errors import ServiceUnavailable, not_found
from sampan.client.kubeconfig import Connection
from sampan.cmd.cluster.account_clients import AccountClients
from sampan.testing.manual_clock import ManualClock


class Accounts:
    """The API as far as tokens go; `failures` requests are not answered."""

    def __init__(self, failures=0):
        self.there, self.given, self.failures = set(), 0, failures

    async def create(self, resource, obj, namespace="", *, subresource="", name=""):
        if self.failures:
            self.failures -= 1
            raise ServiceUnavailable("not yet")
        assert namespace == "kube-system"
        if not subresource:
            self.there.add(obj["metadata"]["name"])
            return obj
        if name not in self.there:
            raise not_found("serviceaccounts", "", name)
        self.given += 1
        return {"status": {"token": f"{name}-{self.given}"}}


def clients_of(api, clock):
    return AccountClients(api, Connection("https://127.0.0.1:1"), clock)


def header(clients, account):
    [(_, value)] = clients.of(account)._credentials()
    return value


def test_missing_accounts_are_made_and_each_client_has_its_token():
    async def story():
        api = Accounts()
        clients = clients_of(api, ManualClock())
        await clients.obtain(["b", "a", "a"])
        assert api.there == {"a", "b"}
        assert header(clients, "a").startswith("Bearer a-")
        assert header(clients, "b").startswith("Bearer b-")
        await clients.close()

    asyncio.run(story())


def test_an_api_that_does_not_answer_yet_is_asked_again():
    async def story():
        clock = ManualClock()
        clients = clients_of(Accounts(failures=2), clock)
        waiting = asyncio.ensure_future(clients.obtain(["a"]))  # noqa: TID251
        for _ in range(3):
            await clock.advance(1)
        await waiting
        assert header(clients, "a") == "Bearer a-1"
        await clients.close()

    asyncio.run(story())


def test_a_client_that_is_there_uses_the_renewed_token():
    async def story():
        clock = ManualClock()
        clients = clients_of(Accounts(), clock)
        await clients.obtain(["a"])
        client = clients.of("a")
        renewing = asyncio.ensure_future(clients.keep_fresh())  # noqa: TID251
        for _ in range(50):
            await clock.advance(60)
        renewing.cancel()
        assert client._credentials() == [("authorization", "Bearer a-2")]
        await clients.close()

    asyncio.run(story())
