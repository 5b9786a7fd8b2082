"""apiserver/outside/webhook_client.py, and everybody who calls with it: nobody waits for ever."""

import asyncio
from contextlib import asynccontextmanager

import orjson
import pytest

from sampan.apiserver.audit.sinks import LAST_SECONDS, WebhookSink
from sampan.apiserver.authn.jwt import BadToken
from sampan.apiserver.authn.user import User
from sampan.apiserver.authn.webhook import TokenWebhook
from sampan.apiserver.authz.chain import Attributes, Decision
from sampan.apiserver.authz.settings import WebhookAuthorizerSettings
from sampan.apiserver.authz.webhook import WebhookAuthorizer
from sampan.apiserver.outside.configured_callers import MOST, ConfiguredCallers
from sampan.apiserver.outside.webhook_client import Caller, CallFailed, Target
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.core.metrics import Metrics
from sampan.core.telemetry.trace_context import trace_id_of
from sampan.core.telemetry.traces import Traces
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

NO_KIND = "couldn't get version/kind; json parse error: json: cannot unmarshal"
HOLDER = (
    'into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


@asynccontextmanager
async def hanging():
    """A server that takes whatever it is sent, and says nothing; its URL."""
    over = asyncio.Event()

    async def take(reader, writer):
        await over.wait()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    finally:
        over.set()
        server.close()


@asynccontextmanager
async def answering(*answers):
    """One that gives these answers, one after the other; its URL and what it was asked."""
    left, asked = list(answers), []

    async def handle(request):
        asked.append(request)
        return left.pop(0)

    server = Server(handle)
    port = await server.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}/hook", asked
    finally:
        await server.stop(0.1)


def run(test):
    virtual_time.run(test())


def test_who_is_called_is_told_which_trace_that_belongs_to():
    async def test():
        answer = Response(200, (), b"{}")
        async with answering(answer, answer) as (url, asked):
            caller = Caller(Target(url))
            await Traces(LoopClock()).timed("u", "apiserver", "call", caller.post({}, 5.0))
            await caller.post({}, 5.0)
            await caller.close()
        assert asked[0].headers["traceparent"].startswith(f"00-{trace_id_of('u')}-")
        assert "traceparent" not in asked[1].headers

    run(test)


async def failure(url, seconds=10.0):
    caller = Caller(Target(url))
    try:
        with pytest.raises(CallFailed) as caught:
            await caller.post({"a": 1}, seconds)
    finally:
        await caller.close()
    return str(caught.value)


def test_who_hangs_is_told_by_its_name():
    async def test():
        async with hanging() as url:
            assert await failure(url) == f'Post "{url}": context deadline exceeded'

    run(test)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Response(404), "the server could not find the requested resource"),
        (Response(503), "the server is currently unable to handle the request"),
        (
            Response(500, (), b'it "broke"\n'),
            'an error on the server ("it \\"broke\\"") has prevented the request from succeeding',
        ),
        (
            Response(302, (("location", "http://evil.example/"),)),
            "the server responded with the status code 302 but did not return more information",
        ),
        (Response(400, (), b'{"kind":"Status","message":"not like this"}'), "not like this"),
        (Response(409), "the server reported a conflict"),
        (Response(403, (), b"not you"), "not you"),
        (Response(403, (("content-type", "application/json"),), b"{}"), "unknown"),
        (
            Response(200, (("content-type", "application/json"),)),
            "0-length response with status code: 200 and content type: application/json",
        ),
        (Response(200, (), b"tea"), f"{NO_KIND} string {HOLDER}"),
        (Response(200, (), b"[]"), f"{NO_KIND} array {HOLDER}"),
    ],
)
def test_an_answer_that_is_none_is_told_in_kubernetes_words(answer, words):
    async def test():
        async with answering(answer) as (url, asked):
            assert await failure(url) == words
            assert len(asked) == 1  # a redirect is not followed

    run(test)


def test_nobody_there():
    async def test():
        async with hanging() as url:
            pass
        port = url.split(":")[2].split("/")[0]
        told = await failure(url)
        assert told == f'Post "{url}": dial tcp 127.0.0.1:{port}: connect: connection refused'

    run(test)


def test_a_token_webhook_that_hangs_authenticates_nobody():
    async def test():
        async with hanging() as url:
            caller = Caller(Target(url))
            with pytest.raises(BadToken, match="context deadline exceeded"):
                await TokenWebhook(caller, 60.0, LoopClock()).user("t", ("api",))
            await caller.close()

    run(test)


@pytest.mark.parametrize("denies", [True, False])
def test_an_authorization_webhook_that_hangs_allows_nobody(denies):
    async def test():
        settings = WebhookAuthorizerSettings(timeout_seconds=3.0, denies_on_failure=denies)
        async with hanging() as url:
            caller = Caller(Target(url))
            authorizer = WebhookAuthorizer(caller, settings, LoopClock())
            decision, why = await authorizer.authorize(Attributes(User("eve"), "get", path="/x"))
            await caller.close()
        assert decision is (Decision.DENY if denies else Decision.NO_OPINION)
        assert "context deadline exceeded" in why

    run(test)


def test_an_audit_webhook_that_hangs_holds_up_neither_requests_nor_the_end():
    async def test():
        clock, metrics = LoopClock(), Metrics()
        async with hanging() as url:
            caller = Caller(Target(url))
            sink = WebhookSink(caller, clock, metrics)
            for number in range(3):
                sink.write(orjson.dumps({"number": number}))
            await asyncio.sleep(40)  # in the midst of its second attempt
            before = clock.monotonic()
            await sink.close()
            assert clock.monotonic() - before <= LAST_SECONDS + 1
            await caller.close()
        assert 'apiserver_audit_error_total{plugin="webhook"} 3' in metrics.render()

    run(test)


def test_what_was_under_way_at_the_end_is_sent_once_more():
    async def test():
        async with answering(Response(500), Response(200, (), b"{}")) as (url, asked):
            caller = Caller(Target(url))
            sink = WebhookSink(caller, LoopClock(), Metrics())
            sink.write(b'{"number":1}')
            await asyncio.sleep(1.1)  # it failed, and waits before it tries again
            await sink.close()
            await caller.close()
            assert [orjson.loads(item.body)["items"] for item in asked] == [[{"number": 1}]] * 2

    run(test)


def test_callers_are_not_kept_for_ever():
    async def test():
        async def handle(_request):
            return Response(200, (), b"{}")

        server = Server(handle)
        url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
        callers = ConfiguredCallers(lambda *_: ("", 0))
        for number in range(MOST + 5):
            await callers.post({"url": f"{url}/{number}"}, {}, 5.0)
        assert len(callers) == MOST
        await callers.close()
        await server.stop(0.1)

    run(test)
