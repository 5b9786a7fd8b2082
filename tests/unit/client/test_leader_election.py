import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.errors import ServiceUnavailable, already_exists, conflict, not_found
from sampan.client.leader_election import (
    LeaderElector,
    LeaseSettings,
    Seen,
    may_take,
    observation,
    taken_spec,
)
from sampan.core.tasks import Tasks
from tests.support import virtual_time


class LeaseApi:
    """One lease, compare-and-swap; `down_for` names clients that cannot reach it."""

    def __init__(self):
        self.lease = None
        self.revision = 1

    async def get(self, resource, namespace, name):
        if self.lease is None:
            raise not_found("leases", "coordination.k8s.io", name)
        return self.lease

    async def create(self, resource, obj, namespace="", *, subresource="", name=""):
        if self.lease is not None:
            raise already_exists("leases", "coordination.k8s.io", obj["metadata"]["name"])
        return self._stored(obj)

    async def update(self, resource, obj, *, subresource=""):
        if obj["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise conflict("leases", "coordination.k8s.io", "l", "changed")
        return self._stored(obj)

    def _stored(self, obj):
        self.revision += 1
        meta = {**obj["metadata"], "resourceVersion": str(self.revision)}
        self.lease = {**obj, "metadata": meta}
        return self.lease


class Cut:
    """The way of one process to the API, which can be cut."""

    def __init__(self, api):
        self.api, self.down = api, False

    def __getattr__(self, verb):
        async def call(*arguments, **keywords):
            if self.down:
                raise ServiceUnavailable("no route")
            return await getattr(self.api, verb)(*arguments, **keywords)

        return call


class Process:
    leaders: set

    def __init__(self, api, name, leaders):
        self.name, self.leaders = name, leaders
        self.way = Cut(api)
        self.tasks = Tasks(name)
        self.elector = LeaderElector(
            self.way,
            LeaseSettings("kube-system", "l", name),
            clock=virtual_time.LoopClock(),
            rng=random.Random(name),
        )

    def start(self):
        self.tasks.start("elect", self._again())

    async def _again(self):
        while True:
            await self.elector.run(self._lead)
            await asyncio.sleep(1)

    async def _lead(self):
        assert not self.leaders, "two leaders"
        self.leaders.add(self.name)
        try:
            await asyncio.Event().wait()
        finally:
            self.leaders.discard(self.name)


def processes(story):
    async def run():
        api, leaders = LeaseApi(), set()
        a, b = Process(api, "a", leaders), Process(api, "b", leaders)
        try:
            await story(api, leaders, a, b)
        finally:
            await a.tasks.stop()
            await b.tasks.stop()

    virtual_time.run(run())


def test_one_leads_and_the_other_takes_over_when_it_is_cut_off():
    async def story(api, leaders, a, b):
        a.start()
        await asyncio.sleep(1)
        b.start()
        await asyncio.sleep(100)
        assert leaders == {"a"}
        a.way.down = True
        await asyncio.sleep(12)
        assert leaders == set()  # it stopped by itself, before the other may begin
        await asyncio.sleep(10)
        assert leaders == {"b"}
        assert api.lease["spec"]["leaseTransitions"] == 1

    processes(story)


def test_a_clean_stop_hands_over_at_once():
    async def story(api, leaders, a, b):
        a.start()
        await asyncio.sleep(1)
        b.start()
        await asyncio.sleep(10)
        await a.tasks.stop()
        assert api.lease["spec"]["holderIdentity"] == ""
        await asyncio.sleep(5)
        assert leaders == {"b"}

    processes(story)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0.1, 30)), max_size=8))
def test_there_are_never_two_leaders(cuts):
    async def story(api, leaders, a, b):
        a.start()
        b.start()
        for who, seconds in cuts:
            process = {"a": a, "b": b}[who]
            process.way.down = not process.way.down
            await asyncio.sleep(seconds)
        a.way.down = b.way.down = False
        await asyncio.sleep(60)
        assert len(leaders) == 1

    processes(story)


def test_a_holder_is_judged_by_when_we_saw_its_last_change():
    spec = {"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": "long ago"}
    first = observation(None, spec, 100.0)
    assert observation(first, dict(spec), 110.0).since == 100.0
    assert not may_take(first, "me", 114.9)
    assert may_take(first, "me", 115.0)
    assert observation(first, {**spec, "renewTime": "now"}, 110.0).since == 110.0


def test_renewing_keeps_the_time_of_acquisition():
    settings = LeaseSettings("ns", "l", "me")
    spec = taken_spec({}, settings, 100.0)
    assert spec["leaseTransitions"] == 0
    again = taken_spec(spec, settings, 200.0)
    assert again["acquireTime"] == spec["acquireTime"]
    assert again["renewTime"] != spec["renewTime"]
    assert may_take(Seen({"holderIdentity": ""}, 0.0), "me", 0.0)


def test_a_lease_that_is_held_and_not_renewed_is_a_trouble():
    async def main():
        api, clock = LeaseApi(), virtual_time.LoopClock()
        elector = LeaderElector(
            api, LeaseSettings("ns", "l", "me"), clock=clock, rng=random.Random(1)
        )
        assert elector.trouble() == ""
        await elector._acquire()
        elector.leading = True
        await clock.sleep(15 + 20)
        assert elector.trouble() == ""
        await clock.sleep(1)
        assert elector.trouble() == "failed election to renew leadership on lease l"
        await elector._try_renew()
        assert elector.trouble() == ""

    virtual_time.run(main())
