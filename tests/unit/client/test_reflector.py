import asyncio
import logging
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.errors import Expired, Forbidden, ServiceUnavailable, UnknownPath
from sampan.api.resources import PODS
from sampan.client.reflector import Delete, Put, Reflector, Replace, Selection
from sampan.core.tasks import Tasks
from tests.support import virtual_time
from tests.support.worlds.faulty_client import Faults, FaultyClient
from tests.support.worlds.small_api import SmallApi


def pod(name):
    return {"metadata": {"name": name, "namespace": "ns", "uid": name}}


class World:
    """An API, a bad connection to it, a reflector on that, and what the reflector said."""

    def __init__(self):
        self.changes, self.refusals = [], []
        self.tasks = Tasks("test")
        self.clock = virtual_time.LoopClock()
        self.api, self.faults = SmallApi(self.clock), Faults(self.clock)
        self.client = FaultyClient(self.api, self.faults)
        self.reflector = Reflector(
            self.client, Selection(PODS), clock=self.clock, rng=random.Random(1)
        )

    async def __aenter__(self):
        self.tasks.start("reflector", self.reflector.run(self.changes.append, self.refused))
        return self

    async def __aexit__(self, *_):
        await self.tasks.stop()
        assert self.client.open_watches == 0

    def refused(self):
        self.refusals.append(self.reflector.refusal)

    def names(self):
        found = {}
        for change in self.changes:
            match change:
                case Replace(items):
                    found = {obj["metadata"]["name"]: obj for obj in items}
                case Put(obj):
                    found[obj["metadata"]["name"]] = obj
                case Delete(obj):
                    found.pop(obj["metadata"]["name"], None)
        return found


async def settled(seconds=0.01):
    await asyncio.sleep(seconds)


def test_it_lists_once_and_then_follows_the_watch():
    async def story():
        async with World() as world:
            world.api.put(PODS, pod("a"))
            await settled()
            b = world.api.put(PODS, pod("b"))
            world.api.remove(PODS, "ns", "a")
            await settled()
            kinds = [type(change) for change in world.changes]
            assert kinds == [Replace, Put, Delete]
            assert world.changes[1] == Put(b)
            assert world.client.lists == world.client.watches == 1

    virtual_time.run(story())


def test_a_broken_watch_resumes_without_a_new_list():
    async def story():
        async with World() as world:
            world.faults.fail_watch(1, ServiceUnavailable("gone"))
            await settled()
            for name in "abc":
                world.api.put(PODS, pod(name))
            await settled(5)
            assert set(world.names()) == set("abc")
            assert (world.client.lists, world.client.watches) == (1, 2)

    virtual_time.run(story())


def test_a_watch_that_ended_cleanly_is_resumed_at_once():
    async def story():
        async with World() as world:
            world.faults.fail_watch(1, None)
            await settled()
            world.api.put(PODS, pod("a"))
            world.api.put(PODS, pod("b"))
            await settled()
            assert set(world.names()) == {"a", "b"}
            assert world.client.lists == 1

    virtual_time.run(story())


def test_expired_means_a_new_list_at_once():
    async def story():
        async with World() as world:
            world.faults.fail_watch(0, Expired("too old"))
            world.api.put(PODS, pod("a"))
            await settled()
            assert [type(change) for change in world.changes] == [Replace, Replace]
            assert world.client.lists == 2

    virtual_time.run(story())


def test_a_refusal_means_a_new_list_later():
    async def story():
        async with World() as world:
            world.faults.fail_watch(0, Forbidden("no"))
            world.api.put(PODS, pod("a"))
            await settled(0.5)
            assert world.client.lists == 1
            await settled(2)
            assert world.client.lists == 2

    virtual_time.run(story())


def test_a_kind_that_is_not_served_is_refused_until_it_is():
    """[L3] An older server, or a kind that comes later: that is no empty list."""

    async def story():
        async with World() as world:
            lacking = UnknownPath("404 page not found")
            world.faults.fail_lists([lacking] * 3)
            world.api.put(PODS, pod("a"))
            await settled()
            assert (world.changes, world.refusals) == ([], [lacking])
            assert lacking.__traceback__ is None, "its frames have who keeps it"
            await settled(30)
            assert set(world.names()) == {"a"}
            assert world.reflector.refusal is None

    virtual_time.run(story())


def test_what_was_known_of_a_kind_stays_when_it_is_refused():
    async def story():
        async with World() as world:
            world.api.put(PODS, pod("a"))
            await settled()
            world.faults.refusals["pods"] = UnknownPath("404 page not found")
            world.faults.cut(expired=True)
            world.api.put(PODS, pod("b"))
            await settled(60)
            assert set(world.names()) == {"a"}
            assert world.reflector.refusal is not None
            world.faults.end()
            world.api.remove(PODS, "ns", "a")
            await settled(60)
            assert set(world.names()) == {"b"}

    virtual_time.run(story())


def test_a_refusal_is_logged_once(caplog):
    caplog.set_level(logging.INFO, "sampan")

    async def story():
        async with World() as world:
            world.faults.fail_lists([Forbidden("pods is forbidden")] * 4)
            await settled(40)
            assert world.client.lists == 5

    virtual_time.run(story())
    assert caplog.text.count("list or watch was refused") == 1


def test_bookmarks_advance_the_revision_from_which_it_resumes():
    async def story():
        async with World() as world:
            world.faults.fail_watch(1, ServiceUnavailable("gone"))
            await settled()
            world.api.bookmark()
            await settled()
            world.api.compact()
            await settled(5)
            assert world.reflector.revision == world.api.revision
            assert world.client.lists == 1  # the revision before the bookmark is gone: no relist

    virtual_time.run(story())


def test_failures_are_tried_again_with_growing_pauses():
    async def story():
        async with World() as world:
            world.faults.fail_lists([ServiceUnavailable("down")] * 10)
            await settled(0.7)
            assert world.client.lists == 1
            await settled(60)
            assert 4 <= world.client.lists <= 8  # 0.8, 1.6, 3.2 … each at most doubled
            await settled(600)
            assert isinstance(world.changes[0], Replace)

    virtual_time.run(story())


def test_the_servers_own_wait_is_honoured():
    async def story():
        async with World() as world:
            world.faults.fail_lists([ServiceUnavailable("busy", retry_after_seconds=20)])
            await settled(19)
            assert world.client.lists == 1
            await settled(2)
            assert world.client.lists == 2

    virtual_time.run(story())


def test_a_watch_that_always_ends_at_once_does_not_spin():
    async def story():
        async with World() as world:
            for _ in range(1000):
                world.faults.fail_watch(0, None)
            await settled(300)
            assert world.client.watches < 30

    virtual_time.run(story())


FAILURES = st.sampled_from([None, ServiceUnavailable("x"), Expired("x"), Forbidden("x")])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcd")),
        st.tuples(st.just("remove"), st.sampled_from("abcd")),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(st.just("bookmark"), st.none()),
        st.tuples(st.just("fail"), st.tuples(st.integers(0, 3), FAILURES)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 1.0, 40.0])),
    ),
    max_size=20,
)


@pytest.mark.slow
@given(STEPS)
def test_no_change_is_ever_lost(steps):
    async def story():
        async with World() as world:
            for verb, value in steps:
                match verb:
                    case "put":
                        world.api.put(PODS, pod(value))
                    case "remove" if world.api.find(PODS, "ns", value):
                        world.api.remove(PODS, "ns", value)
                    case "compact":
                        world.api.compact()
                    case "bookmark":
                        world.api.bookmark()
                    case "fail":
                        world.faults.fail_watch(*value)
                    case "wait":
                        await settled(value)
            await settled(600)
            expected = {o["metadata"]["name"]: o for o in world.api.objects(PODS)}
            assert world.names() == expected

    virtual_time.run(story())
