"""Each agent hears of its own Node, over one watch."""

import asyncio

from sampan.api.resources import NODES
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.tasks import Tasks
from sampan.kubelet.sources.own_node import NodeSource, informer_of_own_node
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi


def told(story, node_name=""):
    async def run():
        clock = LoopClock()
        api, tasks = SmallApi(clock), Tasks("test")
        informer = (
            informer_of_own_node(api, node_name, clock=clock)
            if node_name
            else Informer(api, Selection(NODES), clock=clock)
        )
        source = NodeSource(informer)
        tasks.start("informer", informer.run())
        await story(api, source)
        await tasks.stop()

    virtual_time.run(run())


def recorded(source, name):
    seen = []
    source.subscribe(name, lambda node: seen.append(node["metadata"].get("labels")))
    return seen


async def changes(api):
    for name in ("one", "two"):
        await api.create(NODES, {"metadata": {"name": name}})
    await asyncio.sleep(1)
    await api.patch(NODES, "", "one", {"metadata": {"labels": {"a": "1"}}}, patch_type="merge")
    await asyncio.sleep(1)


def test_each_agent_hears_of_its_own_node_only():
    async def story(api, source):
        one, two = recorded(source, "one"), recorded(source, "two")
        await changes(api)
        assert one == [None, {"a": "1"}]
        assert two == [None]
        await api.delete(NODES, "", "two")
        await asyncio.sleep(1)
        assert two == [None]

    told(story)


def test_one_that_subscribes_late_hears_how_it_is_and_one_that_left_hears_nothing():
    async def story(api, source):
        await changes(api)
        late = recorded(source, "one")
        assert late == [{"a": "1"}]
        source.unsubscribe("one")
        await api.patch(NODES, "", "one", {"metadata": {"labels": {"a": "2"}}}, patch_type="merge")
        await asyncio.sleep(1)
        assert late == [{"a": "1"}]

    told(story)


def test_a_process_of_one_node_watches_no_other():
    async def story(api, source):
        one, two = recorded(source, "one"), recorded(source, "two")
        await changes(api)
        assert one == [None, {"a": "1"}]
        assert two == []

    told(story, "one")
