import asyncio
import random
from contextlib import asynccontextmanager

import orjson
import pytest

from sampan.api.errors import (
    Conflict,
    Expired,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
    UnknownPath,
)
from sampan.api.resources import DEPLOYMENTS, NODES, PODS
from sampan.client.contract import Page, Preconditions
from sampan.client.kubeconfig import Connection
from sampan.client.rest import RETRIES, Caller, Credentials, RestClient, connect, path_of
from sampan.core.clock import SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Response, Stream
from sampan.core.http.server import Server


class ImpatientClock(SystemClock):
    """Keeps count of the pauses instead of taking them."""

    def __init__(self):
        self.pauses = []

    async def sleep(self, seconds):
        self.pauses.append(seconds)


@asynccontextmanager
async def served(*replies):
    """A real server that gives these replies in turn, and a client of it."""
    requests, waiting = [], list(replies)

    async def handler(request):
        requests.append(request)
        return waiting.pop(0)

    server = Server(handler)
    port = await server.start("127.0.0.1", 0)
    clock = ImpatientClock()
    client = RestClient(
        HttpClient(),
        f"http://127.0.0.1:{port}",
        Caller(Credentials(Connection("http://x", token="t"), clock)),
        clock=clock,
        rng=random.Random(1),
    )
    try:
        yield client, requests, clock
    finally:
        await client.close()
        await server.stop(0)


def answer(status, value, *headers):
    return Response(status, headers, orjson.dumps(value))


def status(code, reason, message="m"):
    return {"kind": "Status", "code": code, "reason": reason, "message": message}


def test_paths():
    assert path_of(PODS, "ns", "web", "binding") == "/api/v1/namespaces/ns/pods/web/binding"
    assert path_of(DEPLOYMENTS, "ns") == "/apis/apps/v1/namespaces/ns/deployments"
    assert path_of(PODS) == "/api/v1/pods"
    assert path_of(NODES, "", "n1") == "/api/v1/nodes/n1"
    assert path_of(NODES, "", "a/b") == "/api/v1/nodes/a%2Fb"


def test_verbs_become_requests():
    async def story():
        pod = {"metadata": {"name": "web", "namespace": "ns"}}
        async with served(*[answer(200, pod)] * 6) as (client, requests, _):
            assert await client.get(PODS, "ns", "web") == pod
            await client.create(PODS, pod)
            await client.create(PODS, {}, "ns", name="web", subresource="binding")
            await client.update(PODS, pod, subresource="status")
            await client.patch(PODS, "ns", "web", {"a": 1}, patch_type="merge")
            await client.delete(
                PODS,
                "ns",
                "web",
                grace_seconds=0,
                preconditions=Preconditions("u", 5),
                propagation="Orphan",
            )
            assert [(one.method, one.path) for one in requests] == [
                ("GET", "/api/v1/namespaces/ns/pods/web"),
                ("POST", "/api/v1/namespaces/ns/pods"),
                ("POST", "/api/v1/namespaces/ns/pods/web/binding"),
                ("PUT", "/api/v1/namespaces/ns/pods/web/status"),
                ("PATCH", "/api/v1/namespaces/ns/pods/web"),
                ("DELETE", "/api/v1/namespaces/ns/pods/web"),
            ]
            assert requests[4].headers["content-type"] == "application/merge-patch+json"
            assert requests[0].headers["authorization"] == "Bearer t"
            options = orjson.loads(requests[5].body)
            assert options["gracePeriodSeconds"] == 0
            assert options["preconditions"] == {"uid": "u", "resourceVersion": "5"}
            assert options["propagationPolicy"] == "Orphan"

    asyncio.run(story())


def test_a_list_gives_items_revision_and_the_way_on():
    async def story():
        listed = {
            "metadata": {"resourceVersion": "7", "continue": "x"},
            "items": [{"metadata": {"name": "a"}}],
        }
        async with served(answer(200, listed)) as (client, requests, _):
            page = await client.list(PODS, "ns", label_selector="a=b", revision=0, page=Page(10))
            assert (page.revision, page.continue_token) == (7, "x")
            assert page.items[0]["kind"] == "Pod"
            assert requests[0].query == "labelSelector=a%3Db&resourceVersion=0&limit=10"

    asyncio.run(story())


def test_a_status_is_raised_as_what_it_says():
    async def story():
        replies = [
            answer(404, status(404, "NotFound")),
            answer(409, status(409, "Conflict")),
            Response(502, (), b"bad gateway"),
            Response(404, (), b"404 page not found\n"),
        ]
        async with served(*replies) as (client, _, _clock):
            with pytest.raises(NotFound):
                await client.get(PODS, "ns", "a")
            with pytest.raises(Conflict):
                await client.get(PODS, "ns", "a")
            with pytest.raises(Exception, match="bad gateway"):
                await client.get(PODS, "ns", "a")
            # Nobody serves the path: nothing is said about the object.
            with pytest.raises(UnknownPath, match="404 page not found"):
                await client.get(PODS, "ns", "a")

    asyncio.run(story())


def test_retry_after_is_honoured_and_the_request_repeated():
    async def story():
        busy = answer(429, status(429, "TooManyRequests"), ("retry-after", "3"))
        async with served(busy, busy, answer(200, {"ok": 1})) as (client, _, clock):
            assert await client.get(PODS, "ns", "a") == {"ok": 1}
            assert clock.pauses == [3.0, 3.0]
        async with served(*[busy] * (RETRIES + 1)) as (client, _, clock):
            with pytest.raises(TooManyRequests) as raised:
                await client.get(PODS, "ns", "a")
            assert raised.value.retry_after_seconds == 3

    asyncio.run(story())


def test_no_server_is_service_unavailable():
    async def story():
        client = RestClient(
            HttpClient(),
            "http://127.0.0.1:1",
            Caller(Credentials(Connection("http://x"), SystemClock())),
            clock=SystemClock(),
            rng=random.Random(),
        )
        with pytest.raises(ServiceUnavailable):
            await client.get(PODS, "ns", "a")
        with pytest.raises(ServiceUnavailable):
            async for _ in client.watch(PODS, revision=1):
                pass
        await client.close()

    asyncio.run(story())


def event(kind, obj):
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def test_a_watch_is_read_line_by_line_however_it_was_cut():
    async def story():
        whole = event("ADDED", {"n": 1}) + event("DELETED", {"n": 2}) + event("BOOKMARK", {"n": 3})

        async def chunks():
            for start in range(0, len(whole), 7):
                yield whole[start : start + 7]

        async with served(Stream(200, (), chunks())) as (client, requests, _):
            seen = [(one.type, one.object["n"]) async for one in client.watch(PODS, revision=5)]
            assert seen == [("ADDED", 1), ("DELETED", 2), ("BOOKMARK", 3)]
            assert "watch=true&allowWatchBookmarks=true&resourceVersion=5" in requests[0].query

    asyncio.run(story())


def test_an_error_in_a_watch_and_a_refused_watch_are_raised():
    async def story():
        async def chunks():
            yield event("ADDED", {"n": 1}) + event("ERROR", status(410, "Expired"))

        refused = answer(410, status(410, "Expired"))
        async with served(Stream(200, (), chunks()), refused) as (client, _, _clock):
            seen = []

            async def followed():
                async for one in client.watch(PODS, revision=5):
                    seen.append(one.type)

            with pytest.raises(Expired):
                await followed()
            assert seen == ["ADDED"]
            with pytest.raises(Expired):
                await followed()

    asyncio.run(story())


def test_a_token_file_is_read_again_when_it_has_aged(tmp_path):
    path = tmp_path / "token"
    path.write_text("one\n")

    class Clock(SystemClock):
        at = 0.0

        def monotonic(self):
            return self.at

    clock = Clock()
    credentials = Credentials(Connection("https://x", token_file=str(path)), clock)

    def shown():
        return dict(asyncio.run(credentials.headers()))["authorization"]

    assert shown() == "Bearer one"
    path.write_text("two\n")
    assert shown() == "Bearer one"
    clock.at = 61.0
    assert shown() == "Bearer two"
    path.unlink()
    clock.at = 200.0
    assert shown() == "Bearer two"


def test_a_token_that_the_server_does_not_know_is_read_again_at_once(tmp_path):
    path = tmp_path / "token"
    path.write_text("one")
    connection = Connection("https://x", token_file=str(path))

    async def story():
        refusal = answer(401, status(401, "Unauthorized"))
        async with served(refusal, answer(200, {}), refusal, answer(200, {})) as known:
            client, requests, clock = known
            client._identity = Credentials(connection, clock)
            for content in ("two", "three"):
                with pytest.raises(Unauthorized):
                    await client.get(PODS, "ns", "a")
                path.write_text(content)
                await client.get(PODS, "ns", "a")
            return [request.headers.get("authorization") for request in requests]

    sent = asyncio.run(story())
    assert sent == [f"Bearer {token}" for token in ("one", "two", "two", "three")]


def test_other_identities_are_headers_too():
    connection = Connection("https://x", username="u", password="p", impersonate="bob")
    headers = dict(asyncio.run(Credentials(connection, SystemClock()).headers()))
    assert headers == {"authorization": "Basic dTpw", "impersonate-user": "bob"}


def test_a_connection_gives_a_client():
    async def story():
        connection = Connection("https://127.0.0.1:1", insecure_skip_tls_verify=True)
        client = connect(connection, clock=SystemClock())
        with pytest.raises(ServiceUnavailable):
            await client.get(PODS, "ns", "a")
        await client.close()

    asyncio.run(story())
