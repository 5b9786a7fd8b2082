"""An API server whose store falls silent while the server writes what a cluster starts with."""

import pytest

from sampan.api.errors import Timeout
from sampan.api.schema.published import Schema
from sampan.apiserver.write.ensure import INSIST_SECONDS
from sampan.store.contract import Unavailable
from sampan.store.memory import MemoryStore
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server


class SilentStore(MemoryStore):
    """Until its time is over it answers no write; some of the first it does all the same."""

    def __init__(self, clock, seconds):
        super().__init__(clock)
        self._clock, self._until, self._asked = clock, clock.monotonic() + seconds, 0

    async def create(self, key, value, *, ttl_seconds=0):
        self._asked += 1
        if self._clock.monotonic() >= self._until:
            return await super().create(key, value, ttl_seconds=ttl_seconds)
        if self._asked in (1, 3, 5):
            await super().create(key, value, ttl_seconds=ttl_seconds)
        raise Unavailable("etcd took too long")


def started(seconds):
    async def story():
        clock = virtual_time.LoopClock()
        began = clock.monotonic()
        async with api_server(Schema.load(), SilentStore(clock, seconds), clock=clock) as api:
            took = clock.monotonic() - began
            found = (await api.get("/api/v1/namespaces")).obj["items"]
            assert len(found) == 4
            assert (await api.get("/api/v1/namespaces/default/services/kubernetes")).status == 200
        return took

    return virtual_time.run(story())


def test_a_store_that_is_silent_for_a_while_is_waited_for():
    assert 20 <= started(20) < 23


def test_a_store_that_stays_silent_is_given_up_after_half_a_minute():
    with pytest.raises(Timeout, match="etcd took too long"):
        started(INSIST_SECONDS + 10)
