"""client/delegated_access.py: what the node's server and the ports of components share."""

import asyncio

from sampan.client.delegated_access import MASTERS, Caller, DelegatedAccess
from sampan.core.http.messages import Request
from tests.support.manual_clock import ManualClock


class Reviews:
    def __init__(self, allowed):
        self.allowed, self.asked = allowed, []

    async def create(self, resource, obj, namespace=""):
        self.asked.append(obj["spec"])
        return {"status": {"allowed": self.allowed}}


METRICS = {"path": "/metrics", "verb": "get"}
SCRAPER = Caller("scraper", ("system:authenticated",))


def may(access, caller=SCRAPER):
    return access.may(caller, "nonResourceAttributes", METRICS)


def test_a_verdict_is_asked_for_once_and_used_for_a_while():
    async def story():
        api, clock = Reviews(allowed=True), ManualClock()
        access = DelegatedAccess(api, clock)
        assert await may(access)
        assert await may(access)
        assert [spec["nonResourceAttributes"] for spec in api.asked] == [METRICS]
        api.allowed = False
        await clock.advance(301)
        assert not await may(access)

    asyncio.run(story())


def test_masters_need_no_verdict_and_nobody_else_does_without_an_api():
    access = DelegatedAccess(None, ManualClock())
    assert asyncio.run(may(access, Caller("root", (MASTERS,))))
    assert not asyncio.run(may(access))
    bearer = Request("GET", "/metrics", "", {"authorization": "Bearer x"})
    assert asyncio.run(access.caller(bearer)) is None
