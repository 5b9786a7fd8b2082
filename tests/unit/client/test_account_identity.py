"""Tokens of a service account: asked for once, renewed in time, and when they are not known."""

import pytest

from sampan.api.errors import Forbidden, NotFound, not_found
from sampan.api.objects import time_text
from sampan.client.account_identity import LIFE_SECONDS, Account, AccountIdentity
from sampan.cmd.cluster.node_accounts import account_of
from sampan.core.tasks import all_of
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


class Kubelet:
    """What a kubelet's client says to a request for a token."""

    def __init__(self, clock, troubles=()):
        self._clock, self._troubles = clock, list(troubles)
        self.asked = []

    async def create(self, _resource, obj, namespace, *, subresource, name):
        await self._clock.sleep(0.1)
        if self._troubles:
            raise self._troubles.pop(0)
        assert (namespace, name, subresource) == ("kube-system", "sampan-node-network", "token")
        self.asked.append(obj["spec"]["boundObjectRef"])
        ends = time_text(self._clock.now() + obj["spec"]["expirationSeconds"])
        return {"status": {"token": f"t{len(self.asked)}", "expirationTimestamp": ends}}


def test_many_ask_at_once_and_one_token_is_made():
    async def test():
        clock = LoopClock()
        kubelet = Kubelet(clock)
        identity = AccountIdentity(kubelet, account_of("sampan-node-network", "n"), clock)
        seen = []

        async def look():
            seen.append(await identity.headers())

        await all_of([look() for _ in range(5)])
        assert seen == [[("authorization", "Bearer t1")]] * 5
        assert kubelet.asked == [{"apiVersion": "v1", "kind": "Node", "name": "n"}]
        await clock.sleep(LIFE_SECONDS * 0.7)
        assert await identity.headers() == [("authorization", "Bearer t1")]
        await clock.sleep(LIFE_SECONDS * 0.2)
        assert await identity.headers() == [("authorization", "Bearer t2")]
        identity.refused()
        assert await identity.headers() == [("authorization", "Bearer t3")]

    virtual_time.run(test())


def test_a_refusal_is_said_and_the_next_one_asks_again():
    async def test():
        clock = LoopClock()
        identity = AccountIdentity(
            Kubelet(clock, [Forbidden("no")]), account_of("sampan-node-network", "n"), clock
        )
        with pytest.raises(Forbidden):
            await identity.headers()
        assert await identity.headers() == [("authorization", "Bearer t1")]

    virtual_time.run(test())


class Accounts:
    """The API as far as accounts and their tokens go."""

    def __init__(self, clock):
        self.there, self._clock = [], clock

    async def create(self, _resource, obj, namespace, *, subresource="", name=""):
        if not subresource:
            self.there.append(f"{namespace}/{obj['metadata']['name']}")
            return obj
        if f"{namespace}/{name}" not in self.there:
            raise not_found("serviceaccounts", "", name)
        assert "boundObjectRef" not in obj["spec"]
        ends = time_text(self._clock.now() + 3600)
        return {"status": {"token": name, "expirationTimestamp": ends}}


def test_an_account_of_ours_is_made_where_it_is_missing_and_no_other():
    async def test():
        clock = LoopClock()
        api = Accounts(clock)
        with pytest.raises(NotFound):
            await AccountIdentity(api, Account("kube-system", "theirs"), clock).headers()
        ours = AccountIdentity(api, Account("kube-system", "ours", is_ours=True), clock)
        assert await ours.headers() == [("authorization", "Bearer ours")]
        assert api.there == ["kube-system/ours"]

    virtual_time.run(test())
