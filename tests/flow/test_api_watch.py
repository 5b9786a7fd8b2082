"""Lists and watches: one consistent story for whoever follows it."""

import orjson
import pytest

from sampan.api.schema.published import Schema
from sampan.apiserver.settings import ApiServerSettings
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server, pod

PODS = "/api/v1/namespaces/default/pods"
CONFIGS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def schema():
    return Schema.load()


def run(schema, story, settings=None):
    async def main():
        async with api_server(schema, settings=settings) as api:
            await story(api)

    virtual_time.run(main())


def config(name, **labels):
    return {"metadata": {"name": name, "labels": labels}}


def test_a_watch_from_a_list_sees_every_later_change_once(schema):
    """[A7]"""

    async def story(api):
        await api.made(CONFIGS, config("before"))
        start = (await api.get(CONFIGS)).obj["metadata"]["resourceVersion"]
        await api.made(CONFIGS, config("a"))
        watch = await api.watch(f"{CONFIGS}?resourceVersion={start}")
        await api.patch(f"{CONFIGS}/a", {"data": {"x": "1"}})
        await api.delete(f"{CONFIGS}/a")
        assert await watch.seen(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        await watch.close()

    run(schema, story)


def test_a_deletion_carries_the_last_state_and_its_own_revision(schema):
    async def story(api):
        made = await api.made(CONFIGS, config("a", x="y"))
        watch = await api.watch(f"{CONFIGS}?resourceVersion={made['metadata']['resourceVersion']}")
        await api.delete(f"{CONFIGS}/a")
        event = await watch.next()
        assert event["type"] == "DELETED"
        assert event["object"]["metadata"]["labels"] == {"x": "y"}
        assert event["object"]["metadata"]["resourceVersion"] == str(api.store.revision)

    run(schema, story)


def test_entering_and_leaving_a_selector_is_added_and_deleted(schema):
    async def story(api):
        watch = await api.watch(f"{CONFIGS}?labelSelector=team%3Dred&resourceVersion=0")
        await api.made(CONFIGS, config("a", team="blue"))
        await api.patch(f"{CONFIGS}/a", {"metadata": {"labels": {"team": "red"}}})
        await api.patch(f"{CONFIGS}/a", {"data": {"x": "1"}})
        await api.patch(f"{CONFIGS}/a", {"metadata": {"labels": {"team": "blue"}}})
        assert await watch.seen(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]

    run(schema, story)


def test_a_node_sees_its_own_pods_only(schema):
    async def story(api):
        watch = await api.watch("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=0")
        for name, node in (("a", "n2"), ("b", "n1")):
            await api.made(PODS, pod(name))
            binding = {"metadata": {"name": name}, "target": {"name": node}}
            assert (await api.post(f"{PODS}/{name}/binding", binding)).status == 201
        assert await watch.seen(1) == [("ADDED", "b")]

    run(schema, story)


def test_initial_events_end_with_their_bookmark(schema):
    async def story(api):
        await api.made(CONFIGS, config("a"))
        watch = await api.watch(
            f"{CONFIGS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            "&allowWatchBookmarks=true"
        )
        assert await watch.seen(2) == [("ADDED", "a"), ("ADDED", "kube-root-ca.crt")]
        mark = await watch.next()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["kind"] == "ConfigMap"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        await api.made(CONFIGS, config("b"))
        assert await watch.seen(1) == [("ADDED", "b")]

    run(schema, story)


def test_a_watch_that_wants_no_initial_events_begins_now(schema):
    async def story(api):
        await api.made(CONFIGS, config("a"))
        for revision in ("", "&resourceVersion=0"):
            watch = await api.watch(
                f"{CONFIGS}?sendInitialEvents=false&resourceVersionMatch=NotOlderThan{revision}"
            )
            name = f"b{len(revision)}"
            await api.made(CONFIGS, config(name))
            assert await watch.seen(1) == [("ADDED", name)]

    run(schema, story)


def test_bookmarks_come_once_a_minute_and_the_watch_ends_on_time(schema):
    async def story(api):
        start = api.store.revision
        watch = await api.watch(
            f"{CONFIGS}?resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=130"
        )
        await api.made("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
        for _ in range(2):
            event = await watch.next()
            assert event["type"] == "BOOKMARK"
            assert event["object"]["metadata"]["resourceVersion"] == str(api.store.revision)
        assert await watch.next() is None

    run(schema, story)


def test_a_start_that_is_too_old_is_expired(schema):
    async def story(api):
        for number in range(200):
            await api.made(CONFIGS, config(f"c{number}"))
        from asyncio import sleep

        await sleep(100)
        await api.patch(f"{CONFIGS}/c0", {"data": {"a": "b"}})
        watch = await api.watch(f"{CONFIGS}?resourceVersion=20")
        event = await watch.next()
        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert event["object"]["message"].startswith("too old resource version: 20 (")
        assert await watch.next() is None

    run(schema, story)


def test_watch_before_what_is_watched_is_the_old_way_to_say_it(schema):
    async def story(api):
        await api.made(CONFIGS, config("a"))
        await api.made(CONFIGS, config("b"))
        watch = await api.watch("/api/v1/watch/namespaces/default/configmaps/b?timeoutSeconds=1")
        event = await watch.next()
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "b")
        assert await watch.next() is None

    run(schema, story)


def test_a_slow_watcher_is_cut_and_others_go_on(schema):
    async def story(api):
        slow = await api.watch(f"{CONFIGS}?resourceVersion=0")
        quick = await api.watch(f"{CONFIGS}?resourceVersion=0")
        await slow.seen(1)
        await quick.seen(1)
        for number in range(12):
            await api.made(CONFIGS, config(f"c{number:02}"))
            assert await quick.seen(1) == [("ADDED", f"c{number:02}")]
        events = []
        while event := await slow.next():
            events.append(event)
        assert [event["object"]["metadata"]["name"] for event in events] == names[:10]
        last = events[-1]["object"]["metadata"]["resourceVersion"]
        resumed = await api.watch(f"{CONFIGS}?resourceVersion={last}")
        assert await resumed.seen(2) == [("ADDED", name) for name in names[10:]]

    names = [f"c{number:02}" for number in range(12)]
    run(schema, story, ApiServerSettings(watcher_buffer_events=10))


@pytest.mark.parametrize("start", ["0", "replay"])
def test_what_was_there_before_a_watch_does_not_count_against_its_buffer(schema, start):
    """A list of more objects than the buffer holds, and one change before they are sent."""

    async def story(api):
        before = api.store.revision
        for name in names:
            await api.made(CONFIGS, config(name))
        revision = before if start == "replay" else 0
        watch = await api.watch(f"{CONFIGS}?resourceVersion={revision}&labelSelector=!other")
        await api.made(CONFIGS, config("live"))
        seen = [name for _, name in await watch.seen(len(names) + 1 + (revision == 0))]
        assert seen[-1] == "live"
        assert set(names) < set(seen)
        await api.made(CONFIGS, config("later"))
        assert await watch.seen(1) == [("ADDED", "later")]

    names = [f"c{number:02}" for number in range(12)]
    run(schema, story, ApiServerSettings(watcher_buffer_events=10))


def test_watches_end_cleanly_when_the_server_stops(schema):
    async def story(api):
        watch = await api.watch(f"{CONFIGS}?resourceVersion=0")
        await watch.seen(1)
        await api.server.stop()
        assert await watch.next() is None
        ready = await api.get("/readyz")
        assert ready.status == 500
        assert b"[-]shutdown failed" in ready.body

    run(schema, story)


def test_pages_of_a_list_show_one_revision(schema):
    """[A7]"""

    async def story(api):
        for name in "abcde":
            await api.made(CONFIGS, config(name))
        first = (await api.get(f"{CONFIGS}?limit=2")).obj
        assert [one["metadata"]["name"] for one in first["items"]] == ["a", "b"]
        assert first["metadata"]["remainingItemCount"] == 4
        await api.delete(f"{CONFIGS}/c")
        await api.made(CONFIGS, config("cc"))
        token = first["metadata"]["continue"]
        second = (await api.get(f"{CONFIGS}?limit=3&continue={token}")).obj
        assert [one["metadata"]["name"] for one in second["items"]] == ["c", "d", "e"]
        assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        token = second["metadata"]["continue"]
        last = (await api.get(f"{CONFIGS}?continue={token}")).obj
        assert [one["metadata"]["name"] for one in last["items"]] == ["kube-root-ca.crt"]
        assert "continue" not in last["metadata"]

    run(schema, story)


def test_a_page_that_was_compacted_away_offers_a_way_on(schema):
    async def story(api):
        for name in "abc":
            await api.made(CONFIGS, config(name))
        token = (await api.get(f"{CONFIGS}?limit=1")).obj["metadata"]["continue"]
        await api.delete(f"{CONFIGS}/b")
        await api.store.compact(api.store.revision)
        expired = await api.get(f"{CONFIGS}?limit=1&continue={token}")
        assert (expired.status, expired.obj["reason"]) == (410, "Expired")
        token = expired.obj["metadata"]["continue"]
        assert (await api.get(f"{CONFIGS}?limit=1&continue={token}")).items == ["c"]

    run(schema, story)


def test_reads_at_a_revision(schema):
    async def story(api):
        made = await api.made(CONFIGS, config("a"))
        then = made["metadata"]["resourceVersion"]
        await api.delete(f"{CONFIGS}/a")
        exact = f"{CONFIGS}?resourceVersion={then}&resourceVersionMatch=Exact"
        assert (await api.get(exact)).items == ["a", "kube-root-ca.crt"]
        newer = f"{CONFIGS}?resourceVersion={then}&resourceVersionMatch=NotOlderThan"
        assert (await api.get(newer)).items == ["kube-root-ca.crt"]
        future = await api.get(f"{CONFIGS}?resourceVersion=9999")
        assert (future.status, future.obj["reason"]) == (504, "Timeout")
        assert future.message.startswith("Timeout: Too large resource version: 9999")
        wrong = await api.get(f"{CONFIGS}?resourceVersionMatch=Exact")
        assert wrong.status == 422

    run(schema, story)


def test_unknown_field_selectors_are_named(schema):
    async def story(api):
        reply = await api.get(f"{PODS}?fieldSelector=spec.foo%3Dx")
        assert (reply.status, reply.message) == (400, "field label not supported: spec.foo")
        reply = await api.get(f"{CONFIGS}?fieldSelector=data%3Dx")
        assert reply.message == (
            '"data" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )

    run(schema, story)


def test_tables_and_metadata_only(schema):
    async def story(api):
        await api.made(PODS, pod("web"))
        table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
        shown = (await api.get(PODS, accept=table)).obj
        assert shown["kind"] == "Table"
        assert shown["columnDefinitions"][0]["name"] == "Name"
        assert shown["rows"][0]["cells"][0] == "web"
        assert shown["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        shown = (await api.get(PODS, accept=partial)).obj
        assert shown["kind"] == "PartialObjectMetadataList"
        assert set(shown["items"][0]) == {"kind", "apiVersion", "metadata"}
        watch = await api.watch(f"{PODS}?resourceVersion=0", accept=table)
        event = await watch.next()
        assert (event["type"], event["object"]["kind"]) == ("ADDED", "Table")
        assert event["object"]["rows"][0]["cells"][0] == "web"

    run(schema, story)


def test_large_answers_are_compressed(schema):
    async def story(api):
        for number in range(3):
            body = config(f"c{number}") | {"data": {"text": "x" * 60_000}}
            await api.made(CONFIGS, body)
        reply = await api.send("GET", CONFIGS, headers={"accept-encoding": "gzip, deflate"})
        assert reply.headers["content-encoding"] == "gzip"
        import gzip

        assert len(orjson.loads(gzip.decompress(reply.body))["items"]) == 4

    run(schema, story)
