"""Many writers, and more than one server: nothing is lost, nothing is seen twice."""

import orjson
import pytest

from sampan.api.errors import AlreadyExists, Conflict
from sampan.api.resources import CONFIG_MAPS, PODS, SERVICES
from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.inprocess import InProcessClient
from sampan.core.metrics import Metrics
from sampan.core.tasks import all_of
from sampan.store.memory import MemoryStore
from tests.support import virtual_time
from tests.support.generators.api_requests import pod
from tests.support.virtual_time import LoopClock


@pytest.fixture(scope="module")
def schema():
    return Schema.load()


def run(schema, story, servers=2, store=MemoryStore):
    async def main():
        clock = LoopClock()
        opened = store(clock)
        made = [
            ApiServer(opened, schema, ApiServerSettings(), clock, Metrics()) for _ in range(servers)
        ]
        for server in made:
            await server.start()
        user = User("me", (MASTERS,))
        await story(*(InProcessClient(server.as_user(user)) for server in made))
        for server in made:
            await server.stop()
        await opened.close()

    virtual_time.run(main())


def config(name):
    return {"metadata": {"name": name, "namespace": "default"}}


async def outcome(work):
    try:
        await work
    except (AlreadyExists, Conflict) as error:
        return type(error)
    return None


def test_patches_that_race_are_all_there_in_the_end(schema):
    """[A7] [E3]"""

    async def story(one, other):
        await one.create(CONFIG_MAPS, config("a"))
        await all_of(
            client.patch(CONFIG_MAPS, "default", "a", {"data": {f"{who}-{number}": "x"}})
            for number in range(20)
            for who, client in (("one", one), ("other", other))
        )
        assert len((await one.get(CONFIG_MAPS, "default", "a"))["data"]) == 40

    run(schema, story)


def test_a_name_and_a_node_are_given_once(schema):
    async def story(one, other):
        created = await all_of(
            outcome(client.create(PODS, pod("web"), "default")) for client in (one, other, one)
        )
        assert sorted(map(str, created)) == sorted(map(str, [None, AlreadyExists, AlreadyExists]))
        bound = await all_of(
            outcome(
                client.create(
                    PODS,
                    {"metadata": {"name": "web"}, "target": {"name": node}},
                    "default",
                    subresource="binding",
                    name="web",
                )
            )
            for client, node in ((one, "n1"), (other, "n2"), (one, "n3"))
        )
        assert bound.count(None) == 1
        assert bound.count(Conflict) == 2

    run(schema, story)


def test_an_answered_write_is_seen_at_once_by_every_server(schema):
    """[E3]"""

    async def story(one, other):
        for number in range(10):
            await one.create(CONFIG_MAPS, config(f"c{number}"))
            assert await other.get(CONFIG_MAPS, "default", f"c{number}")

    run(schema, story)


def test_watchers_of_both_servers_see_the_same_story(schema):
    """[E3]"""

    async def story(one, other):
        start = (await one.list(CONFIG_MAPS)).revision
        watches = [client.watch(CONFIG_MAPS, revision=start) for client in (one, other)]
        await all_of(
            client.create(CONFIG_MAPS, config(f"{who}-{number}"))
            for number in range(10)
            for who, client in (("one", one), ("other", other))
        )
        seen = []
        for watch in watches:
            events = [await anext(watch) for _ in range(20)]
            seen.append([event.object["metadata"]["resourceVersion"] for event in events])
            await watch.aclose()
        assert seen[0] == seen[1]
        assert seen[0] == sorted(seen[0], key=int)

    run(schema, story)


def test_addresses_are_not_given_twice_by_one_server(schema):
    async def story(client):
        body = {"spec": {"type": "NodePort", "ports": [{"port": 80}]}}
        services = await all_of(
            client.create(SERVICES, {"metadata": {"name": f"s{n}"}, **body}, "default")
            for n in range(50)
        )
        assert len({one["spec"]["clusterIP"] for one in services}) == 50
        assert len({one["spec"]["ports"][0]["nodePort"] for one in services}) == 50

    run(schema, story, servers=1)


class RivalStore(MemoryStore):
    """Somebody else gives the service another node port right before the first update of it."""

    rival_port = 0

    async def update(self, key, value, expected_revision, *, ttl_seconds=0):
        if key == "/registry/services/default/s" and not self.rival_port:
            self.rival_port = orjson.loads(value)["spec"]["ports"][0]["nodePort"] + 1
            rival = orjson.loads((await self.get(key)).value)
            rival["spec"]["type"] = "NodePort"
            rival["spec"]["ports"][0]["nodePort"] = self.rival_port
            await super().update(key, orjson.dumps(rival), expected_revision)
        return await super().update(key, value, expected_revision, ttl_seconds=ttl_seconds)


def test_a_put_that_loses_a_race_starts_again_from_what_it_was_given(schema):
    """What the first attempt got (a node port, what plugins changed) is not asked for by the next:
    it was given back, and the service may have another one by now."""

    async def story(client, _other):
        ports = [{"port": 80}]
        plain = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"ports": ports}}
        await client.create(SERVICES, plain)
        put = {**plain, "spec": {"type": "NodePort", "ports": ports}}
        done = await client.update(SERVICES, put)
        assert done["spec"]["ports"][0]["nodePort"] == stores[0].rival_port

    stores = []

    def store(clock):
        stores.append(RivalStore(clock))
        return stores[0]

    run(schema, story, store=store)
