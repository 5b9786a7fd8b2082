"""The in-process client against the real server: same rules, no copies."""

import asyncio
import gc
from collections import Counter

import pytest

from sampan.api.calls import Answer
from sampan.api.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from sampan.api.resources import CONFIG_MAPS, EVENTS, EVENTS_V1, NAMESPACES, PODS
from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import MASTERS, User
from sampan.client import inprocess
from sampan.client.contract import Page, Preconditions
from sampan.client.inprocess import InProcessClient
from sampan.core.tasks import Tasks, all_of
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server, pod


@pytest.fixture(scope="module")
def schema():
    return Schema.load()


def run(schema, story):
    async def main():
        async with api_server(schema) as api:
            client = InProcessClient(api.server.as_user(User("me", (MASTERS,))), "me")
            await story(client, api)

    virtual_time.run(main())


def config(name, **data):
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def test_what_is_read_is_the_servers_own(schema):
    async def story(client, _api):
        made = await client.create(CONFIG_MAPS, config("a"))
        assert await client.get(CONFIG_MAPS, "default", "a") is made
        listed = await client.list(CONFIG_MAPS, "default")
        assert any(one is made for one in listed.items)
        watch = client.watch(CONFIG_MAPS, revision=listed.revision)
        changed = await client.patch(CONFIG_MAPS, "default", "a", {"data": {"x": "1"}})
        event = await anext(watch)
        assert event.type == "MODIFIED"
        assert event.object is changed
        await watch.aclose()

    run(schema, story)


def test_what_is_given_stays_the_callers(schema):
    async def story(client, _api):
        mine = pod("web")
        before = repr(mine)
        await client.create(PODS, mine, "default")
        assert repr(mine) == before

    run(schema, story)


def test_the_same_rules_hold_as_over_the_wire(schema):
    async def story(client, api):
        await client.create(CONFIG_MAPS, config("a"))
        with pytest.raises(AlreadyExists):
            await client.create(CONFIG_MAPS, config("a"))
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "default", "nope")
        with pytest.raises(Invalid):
            await client.create(PODS, pod("Not A Name"), "default")
        with pytest.raises(NotFound):
            await client.create(PODS, pod("web"), "nowhere")
        stranger = InProcessClient(api.server.as_user(User("bob")))
        with pytest.raises(Forbidden):
            await stranger.list(PODS)
        with pytest.raises(Forbidden):
            await anext(stranger.watch(PODS, revision=0))

    run(schema, story)


def test_updates_and_deletes_take_conditions(schema):
    async def story(client, _api):
        first = await client.create(CONFIG_MAPS, config("a"))
        await client.update(CONFIG_MAPS, {**first, "data": {"x": "1"}})
        with pytest.raises(Conflict):
            await client.update(CONFIG_MAPS, {**first, "data": {"x": "2"}})
        with pytest.raises(Conflict):
            await client.delete(CONFIG_MAPS, "default", "a", preconditions=Preconditions("another"))
        await client.delete(
            CONFIG_MAPS, "default", "a", preconditions=Preconditions(first["metadata"]["uid"])
        )

    run(schema, story)


def test_status_and_binding_are_subresources(schema):
    async def story(client, _api):
        await client.create(PODS, pod("web"), "default")
        target = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}}
        await client.create(PODS, target, "default", subresource="binding", name="web")
        bound = await client.get(PODS, "default", "web")
        status = {**bound, "status": {**bound["status"], "phase": "Running"}}
        assert (await client.update(PODS, status, subresource="status"))["spec"]["nodeName"] == "n1"
        found = await client.list(PODS, field_selector="spec.nodeName=n1,status.phase=Running")
        assert [one["metadata"]["name"] for one in found.items] == ["web"]

    run(schema, story)


def test_pages_join_to_one_list(schema):
    async def story(client, _api):
        for name in "abc":
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        page = await client.list(NAMESPACES, page=Page(2))
        rest = await client.list(NAMESPACES, page=Page(9, page.continue_token))
        names = [one["metadata"]["name"] for one in (*page.items, *rest.items)]
        assert names == sorted(names)
        assert len(names) == 7

    run(schema, story)


def test_a_kind_with_two_faces_is_shown_as_asked(schema):
    async def story(client, _api):
        event = {
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
            "reason": "Started",
            "type": "Normal",
            "source": {"component": "kubelet"},
        }
        await client.create(EVENTS, event)
        seen = (await client.list(EVENTS_V1, "default")).items[0]
        assert seen["regarding"]["name"] == "web"

    run(schema, story)


def test_a_long_list_is_whole_though_others_have_the_loop_meanwhile(schema, monkeypatch):
    async def story(client, _api):
        for number in range(7):
            await client.create(CONFIG_MAPS, config(f"c{number}"))
        monkeypatch.setattr(inprocess, "PART", 3)
        listing = Tasks("test").start("list", client.list(CONFIG_MAPS, "default"))
        turns = 0
        while not listing.done():
            turns += 1
            await asyncio.sleep(0)
        names = [each["metadata"]["name"] for each in listing.result().items]
        assert names == [*(f"c{number}" for number in range(7)), "kube-root-ca.crt"]
        assert turns > 2

    run(schema, story)


class StageEvent:
    """A server that writes down what it is sent, and in which turn of the loop."""

    def __init__(self):
        self.turn, self.calls = 0, []
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self):
        self.turn += 1
        if self.turn < 1_000:
            asyncio.get_running_loop().call_soon(self._next)

    async def perform(self, call):
        self.calls.append((self.turn, call.size))
        return Answer(call.body)


def test_what_is_written_is_as_large_as_on_the_wire():
    async def main():
        server = StageEvent()
        client = InProcessClient(server, "me")
        await client.create(CONFIG_MAPS, config("a", x="y" * 100_000))
        await client.update(CONFIG_MAPS, config("a", x="y" * 200_000))
        await client.patch(CONFIG_MAPS, "default", "a", {"data": {"x": "y" * 300_000}})
        await client.create(CONFIG_MAPS, config("a", x=2**70))
        sizes = [size for _, size in server.calls]
        assert [size // 100_000 for size in sizes] == [1, 2, 3, inprocess.UNKNOWN_SIZE // 100_000]

    virtual_time.run(main())


def test_of_many_large_writes_at_once_each_turn_has_a_few():
    async def main(length):
        Tasks("of all who write")
        server = StageEvent()
        client = InProcessClient(server, "me")
        await all_of(client.create(CONFIG_MAPS, config(f"n{n}", x="y" * length)) for n in range(16))
        return Counter(turn for turn, _ in server.calls)

    assert max(virtual_time.run(main(inprocess.BYTES_PER_TURN)).values()) <= 2
    assert max(virtual_time.run(main(100)).values()) == 16


def errors_of_the_api():
    return [each for each in gc.get_objects() if isinstance(each, ApiError)]


def test_of_what_was_refused_nothing_stays(schema):
    """Its error has the frames in which it was raised, and one of these may have the error: of
    thousands of Events for a namespace that is going away each would stay until somebody looks."""

    async def story(client, _api):
        space = {"metadata": {"name": "going", "finalizers": ["a.b/c"]}}
        await client.create(NAMESPACES, space)
        await client.delete(NAMESPACES, "", "going")
        gc.collect()
        gc.disable()
        others = errors_of_the_api()  # kept by other tests of this process
        try:
            for namespace, refused in (("going", Forbidden), ("nowhere", NotFound)):
                for number in range(3):
                    made = config(f"c{number}")
                    made["metadata"]["namespace"] = namespace
                    with pytest.raises(refused):
                        await client.create(CONFIG_MAPS, made, namespace)
            known = {id(error) for error in others}
            assert [error for error in errors_of_the_api() if id(error) not in known] == []
        finally:
            gc.enable()

    run(schema, story)
