"""[N1] full sets for each node, over one watch."""

import asyncio

from sampan.api.resources import PODS
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.tasks import Tasks
from sampan.kubelet.sources.apiserver import ApiserverSource, informer_of_node
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.simulated_node import pod_named
from tests.support.worlds.small_api import SmallApi


def told(story, node_name=""):
    async def run():
        clock = LoopClock()
        api, tasks = SmallApi(clock), Tasks("test")
        if node_name:
            informer = informer_of_node(api, node_name, clock=clock)
        else:
            informer = Informer(api, Selection(PODS), clock=clock)
        source = ApiserverSource(informer)
        tasks.start("informer", informer.run())
        tasks.start("source", source.run())
        await story(api, source)
        await tasks.stop()

    virtual_time.run(run())


def receiver(sets):
    return lambda pods: sets.append(sorted(pod["metadata"]["name"] for pod in pods))


def test_each_node_gets_its_own_pods_as_a_whole_set():
    async def story(api, source):
        first, second = [], []
        source.subscribe("one", receiver(first))
        source.subscribe("two", receiver(second))
        await asyncio.sleep(1)
        assert first == second == [[]]
        for name, node in (("a", "one"), ("b", "two"), ("c", "one")):
            await api.create(PODS, pod_named(name, node_name=node), "default")
        await asyncio.sleep(1)
        assert first[-1] == ["a", "c"]
        assert second[-1] == ["b"]
        await api.delete(PODS, "default", "a", grace_seconds=0)
        await asyncio.sleep(1)
        assert first[-1] == ["c"]
        assert second == [[], ["b"]]

    told(story)


def test_one_who_subscribes_late_gets_what_is_there():
    async def story(api, source):
        await api.create(PODS, pod_named("a", node_name="one"), "default")
        await asyncio.sleep(1)
        sets = []
        source.subscribe("one", receiver(sets))
        await asyncio.sleep(1)
        assert sets == [["a"]]
        source.unsubscribe("one")
        await api.create(PODS, pod_named("b", node_name="one"), "default")
        await asyncio.sleep(1)
        assert sets == [["a"]]

    told(story)


def test_a_node_of_its_own_sees_only_its_own_pods():
    async def story(api, source):
        sets = []
        source.subscribe("one", receiver(sets))
        for number in range(5):
            await api.create(PODS, pod_named(f"p{number}", node_name="two"), "default")
        await api.create(PODS, pod_named("mine", node_name="one"), "default")
        await asyncio.sleep(1)
        assert sets[-1] == ["mine"]

    told(story, "one")
