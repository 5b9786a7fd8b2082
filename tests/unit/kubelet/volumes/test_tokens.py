import asyncio
import random

import pytest

from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.volumes.tokens import Tokens
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi

POD = {"metadata": {"name": "web", "namespace": "shop", "uid": "u1"}, "spec": {}}
HOUR = 3600


def told(story):
    async def run():
        clock = LoopClock()
        api = SmallApi(clock)
        await story(Tokens(api, clock=clock, rng=random.Random(1)), api, clock)

    virtual_time.run(run())


def test_a_token_is_asked_for_once_per_audience_and_life_time():
    """[N15]"""

    async def story(tokens, api, clock):
        first = await tokens.get(POD, {"path": "a"})
        assert await tokens.get(POD, {"path": "b", "expirationSeconds": HOUR}) == first
        assert await tokens.get(POD, {"path": "a", "audience": "vault"}) != first
        assert api.calls == ["create token serviceaccounts"] * 2
        tokens.forget("u1")
        assert await tokens.get(POD, {"path": "a"}) != first

    told(story)


@pytest.mark.parametrize(("life", "renewed"), [(HOUR, 0.8 * HOUR), (100 * HOUR, 24 * HOUR)])
def test_a_token_is_renewed_in_time(life, renewed):
    """[N15] at 80 % of its life, or after a day"""

    async def story(tokens, api, clock):
        wanted = {"path": "a", "expirationSeconds": life}
        first, began = await tokens.get(POD, wanted), clock.now()
        due = tokens.next_due("u1")
        assert renewed - 11 <= due - began <= renewed
        await asyncio.sleep(due - began - 1)
        assert await tokens.get(POD, wanted) == first
        await asyncio.sleep(1)
        assert await tokens.get(POD, wanted) != first

    told(story)


def test_a_token_that_cannot_be_renewed_is_used_to_its_end():
    """[N15] the API is away: the pod keeps what it has for as long as that is good"""

    async def story(tokens, api, clock):
        first = await tokens.get(POD, {"path": "a"})
        api.go_down()
        await asyncio.sleep(0.9 * HOUR)
        assert await tokens.get(POD, {"path": "a"}) == first
        assert tokens.next_due("u1") == clock.now() + 30
        await asyncio.sleep(0.2 * HOUR)
        with pytest.raises(VolumeFailure, match="failed to fetch token: the API is down"):
            await tokens.get(POD, {"path": "a"})

    told(story)
