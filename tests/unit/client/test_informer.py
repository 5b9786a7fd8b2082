import asyncio

from sampan.api.errors import Expired
from sampan.api.resources import NODES, PODS
from sampan.client.indexer import by_namespace
from sampan.client.informer import Informers
from sampan.testing import virtual_time
from sampan.testing.worlds.unreliable_client import UnreliableClient


def pod(name, uid=""):
    return {"metadata": {"name": name, "namespace": "ns", "uid": uid or name}}


def names(old, new):
    return tuple(one and one["metadata"]["uid"] for one in (old, new))


def told(story):
    async def run():
        client = UnreliableClient()
        informers = Informers(client, clock=virtual_time.LoopClock())
        try:
            await story(client, informers)
        finally:
            await informers.stop()

    virtual_time.run(run())


def test_listeners_hear_of_creation_change_and_deletion_in_order():
    async def story(client, informers):
        heard = []
        informer = informers.of(PODS)
        informer.on_change(lambda old, new: heard.append(names(old, new)))
        client.put(pod("a"))
        informers.start()
        await informers.synced()
        client.put(pod("a"))
        client.remove("ns/a")
        await asyncio.sleep(0.01)
        assert heard == [(None, "a"), ("a", "a"), ("a", None)]

    told(story)


def test_the_cache_already_has_what_a_listener_hears_of():
    async def story(client, informers):
        informer = informers.of(PODS)
        informers.start()
        await informers.synced()
        heard = []
        informer.on_change(lambda _old, new: heard.append(informer.cache.get("ns/a") is new))
        client.put(pod("a"))
        await asyncio.sleep(0.01)
        assert heard == [True]

    told(story)


def test_a_late_listener_first_hears_of_all_that_is_there():
    async def story(client, informers):
        client.put(pod("a"))
        informer = informers.of(PODS)
        informers.start()
        await informer.synced()
        heard = []
        informer.on_change(lambda old, new: heard.append(names(old, new)))
        assert heard == [(None, "a")]

    told(story)


def test_a_deletion_and_recreation_missed_by_the_watch_are_still_two_changes():
    async def story(client, informers):
        heard = []
        informer = informers.of(PODS)
        informer.on_change(lambda old, new: heard.append(names(old, new)))
        client.put(pod("a", uid="1"))
        client.fail_watch(0, Expired("too old"))
        informers.start()
        await informers.synced()
        client.remove("ns/a")
        client.put(pod("a", uid="2"))
        client.compact()
        await asyncio.sleep(10)
        assert heard == [(None, "1"), ("1", None), (None, "2")]

    told(story)


def test_one_selection_has_one_informer():
    async def story(client, informers):
        first = informers.of(PODS)
        informers.start()
        again = informers.of(PODS, indices={"namespace": by_namespace})
        assert again is first
        assert informers.of(NODES) is not first
        assert informers.of(PODS, namespace="x") is not first
        await informers.synced()
        assert client.lists == 3
        assert first.cache.by("namespace", "ns") == []

    told(story)


def test_a_shared_informer_goes_on_until_its_last_user_has_released_it():
    async def story(client, informers):
        heard = []

        def leaving(old, new):
            heard.append(("leaving", *names(old, new)))

        def staying(old, new):
            heard.append(("staying", *names(old, new)))

        informers.of(PODS).on_change(leaving)
        informers.of(PODS).on_change(staying)
        informers.start()
        await informers.synced()
        informers.of(PODS).remove(leaving)
        informers.release(PODS)
        informers.release(PODS)
        client.put(pod("a"))
        await asyncio.sleep(0.01)
        assert heard == [("staying", None, "a")]
        informers.release(PODS)
        client.put(pod("b"))
        await asyncio.sleep(10)
        assert heard == [("staying", None, "a")], "nobody is left to be told"

    told(story)
