"""Several API servers on one etcd: one set of objects, one order, no address given twice. [E3]"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import all_of
from sampan.core.telemetry.traces import Traces
from tests.support.generators.api_requests import api_server
from tests.support.parts.etcd_server import etcd_url
from tests.support.worlds.control_plane import published_schema

pytestmark = [pytest.mark.etcd, pytest.mark.slow]

MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"


@asynccontextmanager
async def servers(url, count=2):
    async with AsyncExitStack() as undo:
        made = [
            undo.enter_async_context(
                api_server(published_schema(), url, clock=clock, metrics=Metrics(Traces(clock)))
            )
            for clock in [SystemClock()] * count
        ]
        # At once, on an empty store: both want to fill it.
        yield await all_of(made)


def on_servers(story):
    async def main(url):
        async with asyncio.timeout(40), servers(url) as (one, two):
            await story(one, two)

    with etcd_url() as url:
        asyncio.run(main(url))


def config(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def service(name, **spec):
    spec = {"ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def revision_of(obj):
    return int(obj["metadata"]["resourceVersion"])


def test_what_one_server_answered_the_other_one_has():
    async def story(one, two):
        for number in range(30):
            writer, reader = (one, two) if number % 2 else (two, one)
            made = await writer.made(MAPS, config(f"m{number}"))
            found = await reader.get(f"{MAPS}/m{number}")
            assert found.obj == made
            assert f"m{number}" in (await reader.get(MAPS)).items
            made["data"] = {"changed": "yes"}
            changed = await reader.put(f"{MAPS}/m{number}", made)
            assert changed.status == 200, changed.body
            assert (await writer.get(f"{MAPS}/m{number}")).obj == changed.obj
            assert (await writer.delete(f"{MAPS}/m{number}")).status == 200
            assert (await reader.get(f"{MAPS}/m{number}")).status == 404

    on_servers(story)


def test_a_namespace_made_through_one_server_can_be_used_through_the_other_at_once():
    async def story(one, two):
        for number in range(10):
            name = f"n{number}"
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await one.made("/api/v1/namespaces", space)
            await two.made(f"/api/v1/namespaces/{name}/configmaps", config("m"))

    on_servers(story)


def test_watches_of_both_servers_tell_the_same_story_in_the_same_order():
    async def story(one, two):
        start = (await one.get(MAPS)).obj["metadata"]["resourceVersion"]
        watches = [await api.watch(f"{MAPS}?resourceVersion={start}") for api in (one, two)]

        async def write(api, name):
            made = await api.made(MAPS, config(name))
            made["data"] = {"a": "b"}
            assert (await api.put(f"{MAPS}/{name}", made)).status == 200
            assert (await api.delete(f"{MAPS}/{name}")).status == 200

        await all_of(write((one, two)[n % 2], f"m{n}") for n in range(40))
        stories = []
        for watch in watches:
            events = [await watch.next() for _ in range(120)]
            stories.append([(event["type"], event["object"]) for event in events])
            await watch.close()
        assert stories[0] == stories[1]
        revisions = [revision_of(obj) for _, obj in stories[0]]
        assert revisions == sorted(set(revisions))

    on_servers(story)


def test_a_revision_of_one_server_can_be_waited_for_and_watched_from_at_the_other():
    async def story(one, two):
        for number in range(20):
            made = await one.made(MAPS, config(f"m{number}"))
            at = made["metadata"]["resourceVersion"]
            listed = await two.get(f"{MAPS}?resourceVersion={at}&resourceVersionMatch=NotOlderThan")
            assert f"m{number}" in listed.items
            watch = await two.watch(f"{MAPS}?resourceVersion={revision_of(made) - 1}")
            assert await watch.seen(1) == [("ADDED", f"m{number}")]
            await watch.close()

    on_servers(story)


def test_of_two_conflicting_updates_through_two_servers_one_wins():
    async def story(one, two):
        for number in range(10):
            made = await one.made(MAPS, config(f"m{number}"))
            bodies = [{**made, "data": {"by": name}} for name in ("one", "two")]
            path = f"{MAPS}/m{number}"
            replies = await all_of([one.put(path, bodies[0]), two.put(path, bodies[1])])
            assert sorted(reply.status for reply in replies) == [200, 409]

    on_servers(story)


def test_patches_through_both_servers_all_count():
    """None is lost, though every one of them loses races."""

    async def story(one, two):
        await one.made(MAPS, config("shared"))

        async def add(api, key):
            reply = await api.patch(f"{MAPS}/shared", {"data": {key: "x"}})
            assert reply.status == 200, reply.body

        await all_of(add((one, two)[n % 2], f"k{n}") for n in range(40))
        for api in (one, two):
            assert len((await api.get(f"{MAPS}/shared")).obj["data"]) == 40

    on_servers(story)


def test_no_address_and_no_node_port_is_given_twice():
    async def story(one, two):
        replies = await all_of(
            (one, two)[n % 2].post(SERVICES, service(f"s{n}", type="NodePort")) for n in range(40)
        )
        assert [reply.status for reply in replies] == [201] * 40
        specs = [reply.obj["spec"] for reply in replies]
        for given in (
            [spec["clusterIP"] for spec in specs],
            [spec["ports"][0]["nodePort"] for spec in specs],
        ):
            assert Counter(given).most_common(1)[0][1] == 1
        taken = {"10.96.0.1", *(spec["clusterIP"] for spec in specs)}
        assert set((await two.get(ADDRESSES)).items) == taken
        wish = service("wish", clusterIP=specs[0]["clusterIP"])
        replies = await all_of([one.post(SERVICES, wish), two.post(SERVICES, wish)])
        assert [reply.status for reply in replies] == [422, 422]

    on_servers(story)


def test_of_two_wishes_for_one_address_and_port_through_two_servers_one_is_granted():
    async def story(one, two):
        for number in range(8):
            ports = [{"port": 80, "nodePort": 30100 + number}]
            wish = {"type": "NodePort", "clusterIP": f"10.97.0.{number}", "ports": ports}
            bodies = [service(f"{name}-{number}", **wish) for name in ("one", "two")]
            replies = await all_of([one.post(SERVICES, bodies[0]), two.post(SERVICES, bodies[1])])
            assert sorted(reply.status for reply in replies) == [201, 422]
            assert "already allocated" in next(r.message for r in replies if r.status == 422)

    on_servers(story)


def test_what_a_service_had_is_free_again_after_its_end_at_either_server():
    async def story(one, two):
        wish = {"type": "NodePort", "clusterIP": "10.97.0.9", "ports": [
            {"port": 80, "nodePort": 30500}]}  # fmt: skip
        for number in range(6):
            maker, other = (one, two) if number % 2 else (two, one)
            made = await maker.made(SERVICES, service(f"s{number}", **wish))
            assert "10.97.0.9" in (await other.get(ADDRESSES)).items
            if number % 3 == 0:
                plain = {**made, "spec": {**made["spec"], "type": "ClusterIP"}}
                changed = await other.put(f"{SERVICES}/s{number}", plain)
                assert changed.status == 200, changed.body
                assert "nodePort" not in changed.obj["spec"]["ports"][0]
                port = [{"port": 80, "nodePort": 30500}]
                await maker.made(SERVICES, service("between", type="NodePort", ports=port))
                assert (await other.delete(f"{SERVICES}/between")).status == 200
            assert (await other.delete(f"{SERVICES}/s{number}")).status == 200
            assert "10.97.0.9" not in (await maker.get(ADDRESSES)).items

    on_servers(story)


def test_the_kubernetes_service_leads_to_every_server_that_is_there():
    endpoints = "/api/v1/namespaces/default/endpoints/kubernetes"

    async def addresses(api):
        found = (await api.get(endpoints)).obj
        return {one["ip"] for subset in found["subsets"] for one in subset["addresses"]}

    async def main(url):
        async with asyncio.timeout(40), AsyncExitStack() as undo:
            made = [
                undo.enter_async_context(
                    api_server(published_schema(), url, at(ip), clock=SystemClock())
                )
                for ip in ("10.0.0.1", "10.0.0.2")
            ]
            one, two = await all_of(made)
            assert await addresses(one) == await addresses(two) == {"10.0.0.1", "10.0.0.2"}
            await two.server.stop()
            assert await addresses(one) == {"10.0.0.1"}

    def at(ip):
        return ApiServerSettings(advertise_address=ip)

    with etcd_url() as url:
        asyncio.run(main(url))


def test_the_loss_of_a_server_is_not_noticed_by_who_retries_at_the_other():
    """[E3]"""

    async def main(url):
        async with asyncio.timeout(40), servers(url, 1) as (lasting,):
            async with servers(url, 1) as (dying,):
                await dying.made(MAPS, config("a"))
                listed = await dying.get(MAPS)
                watch = await dying.watch(f"{MAPS}?resourceVersion={revision_of(listed.obj)}")
                await dying.made(MAPS, config("b"))
                event = await watch.next()
                await watch.close()
            await lasting.made(MAPS, config("c"))
            at = revision_of(event["object"])
            resumed = await lasting.watch(f"{MAPS}?resourceVersion={at}")
            assert await resumed.seen(1) == [("ADDED", "c")]
            await resumed.close()
            assert set((await lasting.get(MAPS)).items) >= {"a", "b", "c"}

    with etcd_url() as url:
        asyncio.run(main(url))


def test_each_server_keeps_what_it_is_told_of_pods_that_others_wrote():
    """A scheduler or kubelet tells one server of a pod that was created through another one."""

    async def story(one, two):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
               "spec": {"containers": [{"name": "main", "image": "x"}]}}  # fmt: skip
        made = await one.made("/api/v1/namespaces/default/pods", pod)
        async with asyncio.timeout(30):
            while (await two.get("/api/v1/namespaces/default/pods/web")).status != 200:
                await asyncio.sleep(0.02)
        span = {"uid": made["metadata"]["uid"], "lane": "scheduler", "name": "queue", "began": 1.0,
                "ended": 2.0, "facts": {}}  # fmt: skip
        nobody = {**span, "uid": "nobody"}
        for _ in range(2):
            told = await two.post("/sampan/v1/spans", {"spans": [span, nobody]})
            assert told.obj["taken"] == 1, told.message
        path = "/sampan/v1/trace/pods/default/web"
        found = [
            [item["name"] for item in (await api.get(path)).obj["traces"][0]["spans"]]
            for api in (one, two)
        ]
        assert found[0][0] == "create pods"
        assert found[1] == ["queue", "queue"]

    on_servers(story)
