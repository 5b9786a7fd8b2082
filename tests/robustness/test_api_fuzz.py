"""Odd requests, many of them: no 5xx, no hang, every error a Status [A4, A5, A7, A11].

`make fuzz-api REQUESTS=20000 SEED=1` runs longer; a failure names the seed and shows the request.
"""

import asyncio
import os
import time
import traceback
from pathlib import Path

import orjson
import pytest
import yaml

from sampan.api.schema.published import Schema
from sampan.core.http.messages import Stream
from sampan.core.http.server import Server
from tests.support.generators.api_requests import AS_UPSTREAM, api_server, client_certificate
from tests.support.generators.odd_requests import OddRequests
from tests.support.seed import SEED, drawn

pytestmark = pytest.mark.slow

REQUESTS = int(os.environ.get("SAMPAN_REQUESTS", "3000"))
SECONDS_EACH = 20.0  # a hang, not a slow answer: the machine may be busy
# What is not there in this server, and says so.
ALLOWED = {501, 503}
CORPUS = Path(__file__).parents[1] / "unit" / "api" / "corpus"


def trouble_with(reply, took):
    """What is wrong with the reply; empty: nothing."""
    if took > SECONDS_EACH:
        return f"took {took:.1f} s"
    if isinstance(reply, Stream):
        return "" if reply.status == 200 else f"a stream with {reply.status}"
    allowed = reply.status in ALLOWED or any(text in reply.body for text in AS_UPSTREAM)
    if reply.status >= 500 and not allowed:
        return f"status {reply.status}: {reply.body[:500]!r}"
    if reply.status >= 400 and not is_status(reply):
        return f"status {reply.status} without a Status: {reply.body[:300]!r}"
    return ""


def is_status(reply):
    if dict(reply.headers).get("content-type", "").startswith("text/plain"):
        return True  # health checks and the like speak plain text, as upstream
    if reply.status == 404 and not reply.body:
        return True  # an OpenAPI document that is not there: no words either, as upstream
    if reply.body.startswith(b"k8s\x00"):
        return True  # a Status in protobuf, for who accepts nothing else
    is_yaml = dict(reply.headers).get("content-type", "").startswith("application/yaml")
    found = yaml.safe_load(reply.body) if is_yaml else orjson.loads(reply.body)
    return (
        found["kind"] == "Status"
        and found["status"] == "Failure"
        and found["code"] == reply.status
        and bool(found["message"] or found["reason"])
    )


def good_objects():
    files = sorted(CORPUS.glob("*.yaml"))
    return [yaml.safe_load(file.read_text())["base"] for file in files]


def shown(request):
    body = request.body if len(request.body) < 3000 else request.body[:3000] + b"..."
    return f"{request.method} {request.path}?{request.query} {request.headers}\n{body!r}"


@pytest.mark.timeout(0)
def test_no_request_breaks_the_server():
    """Through everything but the socket, one after the other on one growing cluster."""

    async def run():
        schema = Schema.load()
        rng = drawn()
        wrong = []
        codes = {}
        async with api_server(schema) as api:
            certificate = client_certificate("admin", "system:masters")
            odd = OddRequests(schema, rng, certificate, good_objects())
            for number in range(REQUESTS):
                request = odd.next()
                began = time.monotonic()
                try:
                    reply = await asyncio.wait_for(api.server.handle_http(request), SECONDS_EACH)
                except Exception as error:
                    story = "".join(traceback.format_tb(error.__traceback__)[-3:])
                    wrong.append(f"{number}: {error!r}\n{story}{shown(request)}")
                    continue
                if said := trouble_with(reply, time.monotonic() - began):
                    wrong.append(f"{number}: {said}\n{shown(request)}")
                if isinstance(reply, Stream):
                    await reply.chunks.aclose()
                codes[reply.status] = codes.get(reply.status, 0) + 1
        return wrong, codes

    wrong, codes = asyncio.run(run())
    print(f"seed {SEED}: {dict(sorted(codes.items()))}")
    assert not wrong, f"seed {SEED}, {len(wrong)} of {REQUESTS}:\n" + "\n\n".join(wrong[:20])
    # Noise alone proves little: some of it must have been good enough to be stored.
    assert codes[201] > REQUESTS / 200
    assert codes[200] > REQUESTS / 50


GARBAGE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET\r\n\r\n",
    b"\r\n\r\n\r\n",
    b"GET /api HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /\x00\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nX: \x00\r\n\r\n",
    b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
)
ASK = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"


def test_garbage_on_one_connection_is_not_felt_on_another():
    """[A11] pipelined: a good request, then noise, cut off at any place"""

    async def run():
        rng = drawn()
        async with api_server(Schema.load()) as api:
            server = Server(api.server.handle_http)
            port = await server.start("127.0.0.1", 0)
            for number in range(len(GARBAGE) * 4):
                noise = ASK * rng.randint(0, 3) + GARBAGE[number % len(GARBAGE)] + ASK
                if number >= len(GARBAGE):
                    noise = noise[: rng.randint(1, len(noise))] + rng.randbytes(rng.randint(0, 50))
                await told(port, noise)
                assert b" 200 OK" in (await told(port, ASK))
            await server.stop(1.0)

    async def told(port, data):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(data)
            writer.write_eof()
            return await asyncio.wait_for(reader.read(100_000), 20)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize("depth", [150, 250, 5_000, 100_000])
@pytest.mark.parametrize("media", ["application/json", "application/yaml"])
def test_depth_has_a_limit(depth, media):
    """A body nested deeper than anything real is refused, whatever would have read it."""

    async def run():
        body = b'{"a":' * depth + b"1" + b"}" * depth
        body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"x":' + body + b"}"
        async with api_server(Schema.load()) as api:
            path = "/api/v1/namespaces/default/configmaps"
            for method, kind in (("POST", media), ("PATCH", "application/merge-patch+json")):
                target = path if method == "POST" else f"{path}/x"
                reply = await api.send(method, target, body, headers={"content-type": kind})
                assert reply.status == (400 if depth > 200 else 201 if method == "POST" else 200)

    asyncio.run(run())
