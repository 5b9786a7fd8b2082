import asyncio
import gc
import weakref

from sampan.api.errors import Expired
from sampan.api.resources import NODES, PODS
from sampan.api.rules.aspects import ANYTHING, CAME, PHASE, Interest
from sampan.client.indexer import by_namespace
from sampan.client.informer import FILL, Informers
from tests.support import virtual_time
from tests.support.worlds.faulty_client import Faults, FaultyClient
from tests.support.worlds.small_api import SmallApi


def pod(name, uid=""):
    return {"metadata": {"name": name, "namespace": "ns", "uid": uid or name}}


def names(old, new):
    return tuple(obj and obj["metadata"]["uid"] for obj in (old, new))


def told(story):
    async def run():
        clock = virtual_time.LoopClock()
        api, faults = SmallApi(clock), Faults(clock)
        informers = Informers(FaultyClient(api, faults), clock=clock)
        try:
            await story(api, informers, faults)
        finally:
            await informers.stop()

    virtual_time.run(run())


def test_listeners_hear_of_creation_change_and_deletion_in_order():
    async def story(api, informers, _faults):
        heard = []
        informer = informers.of(PODS)
        informer.on_change(lambda old, new: heard.append(names(old, new)))
        api.put(PODS, pod("a"))
        informers.start()
        await informers.synced()
        api.put(PODS, pod("a"))
        api.remove(PODS, "ns", "a")
        await asyncio.sleep(0.01)
        assert heard == [(None, "a"), ("a", "a"), ("a", None)]

    told(story)


def test_the_cache_already_has_what_a_listener_hears_of():
    async def story(api, informers, _faults):
        informer = informers.of(PODS)
        informers.start()
        await informers.synced()
        heard = []
        informer.on_change(lambda _old, new: heard.append(informer.cache.get("ns/a") is new))
        api.put(PODS, pod("a"))
        await asyncio.sleep(0.01)
        assert heard == [True]

    told(story)


def test_a_listener_or_an_index_that_fails_at_one_object_fails_for_no_other():
    async def story(api, informers, _faults):
        heard = []

        def picky(_old, new):
            if new["metadata"]["name"] == "odd":
                raise KeyError("spec")

        def by_first_letter(obj):
            return ["ode".index(obj["metadata"]["name"][0]) * "x" or "o"]

        informer = informers.of(PODS, indices={"letter": by_first_letter})
        informer.on_change(picky)
        informer.on_change(lambda old, new: heard.append(names(old, new)))
        informers.start()
        await informers.synced()
        for name in ("odd", "quaint", "dear"):
            api.put(PODS, pod(name))
        await asyncio.sleep(0.01)
        assert heard == [(None, "odd"), (None, "quaint"), (None, "dear")]
        assert sorted(informer.cache.index_values("letter")) == ["o", "x"]
        assert len(informer.cache) == 3

    told(story)


def test_a_late_listener_first_hears_of_all_that_is_there():
    async def story(api, informers, _faults):
        api.put(PODS, pod("a"))
        informer = informers.of(PODS)
        informers.start()
        await informer.synced()
        heard = []
        informer.on_change(lambda old, new: heard.append(names(old, new)))
        assert heard == [(None, "a")]

    told(story)


def test_a_deletion_and_recreation_missed_by_the_watch_are_still_two_changes():
    async def story(api, informers, faults):
        heard = []
        informer = informers.of(PODS)
        informer.on_change(lambda old, new: heard.append(names(old, new)))
        api.put(PODS, pod("a", uid="1"))
        faults.fail_watch(0, Expired("too old"))
        informers.start()
        await informers.synced()
        api.remove(PODS, "ns", "a")
        api.put(PODS, pod("a", uid="2"))
        api.compact()
        await asyncio.sleep(10)
        assert heard == [(None, "1"), ("1", None), (None, "2")]

    told(story)


def test_one_selection_has_one_informer():
    async def story(api, informers, _faults):
        first = informers.of(PODS)
        informers.start()
        again = informers.of(PODS, indices={"namespace": by_namespace})
        assert again is first
        assert informers.of(NODES) is not first
        assert informers.of(PODS, namespace="x") is not first
        await informers.synced()
        lists = [call for call in api.calls if call.startswith("list")]
        assert sorted(lists) == ["list nodes", "list pods", "list pods"]
        assert first.cache.by("namespace", "ns") == []

    told(story)


def test_a_shared_informer_goes_on_until_its_last_user_has_released_it():
    async def story(api, informers, _faults):
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
        api.put(PODS, pod("a"))
        await asyncio.sleep(0.01)
        assert heard == [("staying", None, "a")]
        informers.release(PODS)
        api.put(PODS, pod("b"))
        await asyncio.sleep(10)
        assert heard == [("staying", None, "a")], "nobody is left to be told"

    told(story)


def test_who_listened_goes_with_a_stopped_informer_and_leaves_no_cycle():
    class User:
        def __init__(self, informers):
            self.informer = informers.of(PODS)
            self.informer.on_change(self.changed)
            self.informer.on_relist(self.relisted)
            self.informer.at_next_change(self.relisted)

        def changed(self, old, new):
            """It knows whom it hears."""

        def relisted(self):
            """Likewise."""

    async def story(_api, informers, _faults):
        informers.start()
        user = User(informers)
        await informers.synced()
        gone = [weakref.ref(user), weakref.ref(user.informer)]
        informers.release(PODS)
        await asyncio.sleep(1)
        del user
        assert [one() for one in gone] == [None, None]

    gc.disable()
    try:
        told(story)
    finally:
        gc.enable()


def test_a_long_first_list_leaves_the_loop_to_others_and_each_hears_of_it_once():
    """Also who comes while the cache is being filled; nobody is told before it is full."""

    async def story(api, informers, _faults):
        count = 10 * FILL
        for number in range(count):
            api.put(PODS, pod(f"p{number:05d}"))
        informer, early, late, sizes = informers.of(PODS), [], [], []
        informer.on_change(lambda old, new: early.append(names(old, new)))
        informers.start()
        while not informer.is_synced():
            if len(informer.cache) and not late and len(sizes) == 2:
                informer.on_change(lambda old, new: late.append(names(old, new)))
                assert not late
            if len(informer.cache) < count:
                assert not early
                sizes.append(len(informer.cache))
            await asyncio.sleep(0)
        assert len({size for size in sizes if size}) >= 5, "others ran in between"
        assert early == [(None, f"p{number:05d}") for number in range(count)]
        assert late == early
        api.put(PODS, pod("new"))
        await asyncio.sleep(0.01)
        assert early[-1] == late[-1] == (None, "new")

    told(story)


def test_a_listener_hears_of_what_it_is_interested_in():
    async def story(api, informers, _faults):
        heard = {"phases": [], "jobs": [], "everything": []}
        informer = informers.of(PODS)
        interests = {
            "phases": Interest(PHASE),
            "jobs": Interest(ANYTHING, "Job"),
            "everything": Interest(),
        }
        for name, interest in interests.items():
            informer.on_change(lambda _old, new, to=heard[name]: to.append(new["step"]), interest)
        informers.start()
        await informers.synced()
        owners = [{"kind": "Job", "name": "j", "controller": True}]
        steps = [
            ("create", {"labels": {}}, "Pending"),
            ("label", {"labels": {"a": "b"}}, "Pending"),
            ("run", {"labels": {"a": "b"}}, "Running"),
            ("own", {"labels": {"a": "b"}, "ownerReferences": owners}, "Running"),
            ("label of owned", {"ownerReferences": owners}, "Running"),
        ]
        for step, meta, phase in steps:
            pod_now = pod("a")
            pod_now["metadata"] |= meta
            api.put(PODS, {**pod_now, "status": {"phase": phase}, "step": step})
        await asyncio.sleep(0.01)
        assert heard["everything"] == [step for step, _, _ in steps]
        assert heard["phases"] == ["run"]
        assert heard["jobs"] == ["own", "label of owned"]

    told(story)


def test_who_waits_for_the_next_change_is_called_once_whatever_it_touches():
    async def story(api, informers, _faults):
        called = []
        informer = informers.of(PODS)
        informer.on_change(lambda _old, _new: called.append("listener"), Interest(CAME | PHASE))
        informers.start()
        await informers.synced()
        api.put(PODS, pod("a"))
        await asyncio.sleep(0.01)
        informer.at_next_change(lambda: called.append("waiter"))
        for _ in range(2):
            api.put(PODS, pod("a"))
        await asyncio.sleep(0.01)
        assert called == ["listener", "waiter"]

    told(story)


def test_who_waits_for_the_next_change_is_called_also_where_a_new_list_brings_it():
    async def story(api, informers, faults):
        called = []
        faults.fail_watch(0, Expired("too old"))
        informer = informers.of(PODS)
        informer.at_next_change(lambda: called.append("waiter"))
        informers.start()
        await informers.synced()
        api.put(PODS, pod("a"))
        await asyncio.sleep(5)
        assert called == ["waiter"]

    told(story)
