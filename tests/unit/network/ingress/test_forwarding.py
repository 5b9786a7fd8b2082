"""A request on its way through: what a backend is told, and what its client is answered."""

import asyncio
import random
from contextlib import asynccontextmanager
from functools import partial

import pytest

from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Request, Response, Stream, Upgrade
from sampan.core.http.origin import Origin
from sampan.core.http.server import Server, bound_socket
from sampan.network.ingress.backends import Unavailable
from sampan.network.ingress.forwarding import LIMITS, Forwarding, Listener, Way, forwarded
from tests.support import virtual_time

HTTP = Listener("http", 80)


def request(**headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request("GET", "/a", "", {"host": "a.com", **named}, remote="10.1.2.3")


@asynccontextmanager
async def through(backend, more=()):
    """The port of an Ingress in front of `backend`; `more`: further endpoints."""
    far, http = Server(backend), HttpClient()
    port = await far.start("127.0.0.1", 0)

    def find(asked):
        if asked.host == "none.com":
            return Unavailable(503, "nobody")
        return Way([*more, Origin("http", "127.0.0.1", port)])

    between = Forwarding(find, http, random.Random(1))
    near = Server(partial(between.answer, HTTP), limits=LIMITS)
    try:
        yield await near.start("127.0.0.1", 0)
    finally:
        await near.stop(0.5)
        await http.close()
        await far.stop(0.5)


async def raw(port, text):
    """What comes back, until the other side ends it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    return answer


def get(path="/", *headers, method="GET", host="a.com", body=b""):
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", "connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def echo(asked):
    """Everything that the backend was told."""
    lines = [f"{asked.method} {asked.path}?{asked.query}"]
    lines += [f"{name}: {value}" for name, value in asked.headers.items()]
    return Response(200, (("x-from", "backend"),), "\n".join(lines).encode() + b"\n" + asked.body)


def test_a_backend_is_told_who_asks_by_us_alone():
    told = forwarded(
        request(
            x_forwarded_for="6.6.6.6",
            x_forwarded_proto="https",
            x_real_ip="6.6.6.6",
            forwarded="for=6.6.6.6",
            connection="close, X-Forwarded-For, X-Real-IP",
            cookie="a=b",
        ),
        Listener("https", 8443),
    ).headers
    assert told["x-forwarded-for"] == told["x-real-ip"] == "10.1.2.3"
    assert told["x-forwarded-proto"] == told["x-forwarded-scheme"] == "https"
    assert told["x-forwarded-host"] == "a.com"
    assert told["x-forwarded-port"] == "8443"
    assert told["connection"] == "close"
    assert told["cookie"] == "a=b"
    assert "forwarded" not in told


def test_a_header_with_an_underscore_is_none():
    headers = {"host": "a.com", "x_forwarded_for": "6.6.6.6", "content_length": "9"}
    told = forwarded(Request("GET", "/", "", headers), HTTP).headers
    assert not any("_" in name for name in told)


def test_requests_and_answers_pass_whole():
    async def story():
        async with through(echo) as port:
            sent = get("/x/y?q=1", "content-length: 4", "te: trailers", method="POST", body=b"data")
            return await raw(port, sent)

    head, _, body = asyncio.run(story()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"x-from: backend" in head
    assert f"content-length: {len(body)}".encode() in head
    assert head.count(b"date: ") == 1
    lines = body.decode().split("\n")
    assert lines[0] == "POST /x/y?q=1"
    assert lines[-1] == "data"
    assert "host: a.com" in lines
    assert "content-length: 4" in lines
    assert not any(line.startswith("te:") for line in lines)


def test_a_chunked_body_arrives_with_a_length():
    async def story():
        async with through(echo) as port:
            body = b"4\r\ndata\r\n0\r\n\r\n"
            return await raw(port, get("/", "transfer-encoding: chunked", method="PUT", body=body))

    body = asyncio.run(story()).partition(b"\r\n\r\n")[2]
    assert body.endswith(b"\ndata")
    assert b"content-length: 4" in body
    assert b"transfer-encoding" not in body


@pytest.mark.parametrize(
    "framing",
    [
        ("content-length: 5", "transfer-encoding: chunked"),
        ("content-length: 5", "content-length: 6"),
        ("transfer-encoding: xchunked",),
        ("transfer-encoding : chunked",),
        ("content-length: +5",),
    ],
)
def test_a_request_with_two_ends_is_refused(framing):
    seen = []

    async def backend(asked):
        seen.append(asked.path)
        return Response(200)

    async def story():
        async with through(backend) as port:
            body = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a.com\r\n\r\n"
            return await raw(port, get("/first", *framing, method="POST", body=body))

    answer = asyncio.run(story())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert seen == []


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (get("/../etc"), 400),
        (get("*", method="OPTIONS"), 400),
        (get("/", method="TRACE"), 405),
        (get(host="none.com"), 503),
        (get("/", f"content-length: {LIMITS.body_bytes + 1}", method="POST"), 413),
        (get("/", "x: " + "y" * LIMITS.header_bytes), 431),
        (b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n", 400),
    ],
)
def test_what_is_no_business_of_a_backend_is_refused(sent, status):
    async def backend(_asked):
        raise AssertionError("nobody asks it")

    async def story():
        async with through(backend) as port:
            return await raw(port, sent)

    assert asyncio.run(story()).startswith(f"HTTP/1.1 {status} ".encode())


def test_cookies_stay_apart_and_hops_stay_here():
    async def backend(_asked):
        headers = (("set-cookie", "a=1; expires=Mon, 01 Jan 2035 00:00:00 GMT"),
                   ("set-cookie", "b=2"), ("keep-alive", "timeout=5"), ("x-hop", "1"),
                   ("connection", "x-hop"))  # fmt: skip
        return Response(204, headers)

    async def story():
        async with through(backend) as port:
            return await raw(port, get())

    lines = asyncio.run(story()).decode().lower().split("\r\n")
    assert [line for line in lines if line.startswith("set-cookie")] == [
        "set-cookie: a=1; expires=mon, 01 jan 2035 00:00:00 gmt",
        "set-cookie: b=2",
    ]
    assert not any(line.startswith(("keep-alive", "x-hop")) for line in lines)


def test_a_head_has_the_length_of_what_a_get_has():
    async def story():
        async with through(echo) as port:
            return await raw(port, get(method="HEAD"))

    head, _, body = asyncio.run(story()).partition(b"\r\n\r\n")
    assert b"content-length: " in head
    assert b"transfer-encoding" not in head
    assert body == b""


def test_an_answer_streams_as_it_comes():
    async def story():
        go_on = asyncio.Event()

        async def chunks():
            yield b"first"
            await go_on.wait()
            yield b"second"

        async def backend(_asked):
            return Stream(200, (), chunks())

        async with through(backend) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(get())
            async with asyncio.timeout(30):
                await reader.readuntil(b"first")
                go_on.set()
                rest = await reader.read()
            writer.close()
        assert b"second" in rest

    asyncio.run(story())


def test_an_answer_that_breaks_off_is_no_whole_one():
    async def story():
        async def chunks():
            yield b"first"
            raise ConnectionResetError

        async def backend(_asked):
            return Stream(200, (), chunks())

        async with through(backend) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(get())
            got = b""
            try:
                async with asyncio.timeout(30):
                    got = await reader.read()
            except ConnectionResetError:
                pass
            writer.close()
            assert not got.endswith(b"0\r\n\r\n")  # the last chunk

    asyncio.run(story())


def test_a_websocket_passes_and_another_http_does_not():
    async def backend(asked):
        if "upgrade" not in asked.headers:
            return Response(200, (), b"plain")

        async def take_over(connection):
            await connection.write(b"you said " + await connection.read())

        chosen = (("connection", "Upgrade"), ("upgrade", asked.headers["upgrade"]))
        return Upgrade((*chosen, ("x-for", asked.headers["x-forwarded-for"])), take_over)

    async def story(protocol):
        async with through(backend) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            lines = [
                "GET /ws HTTP/1.1",
                "host: a.com",
                "connection: Upgrade",
                f"upgrade: {protocol}",
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            async with asyncio.timeout(30):
                head = await reader.readuntil(b"\r\n\r\n")
                if b" 101 " in head:
                    writer.write(b"hello")
                    head += await reader.readuntil(b"hello")
            writer.close()
            return head

    answer = asyncio.run(story("websocket"))
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert b"x-for: 127.0.0.1" in answer
    assert answer.endswith(b"you said hello")
    assert asyncio.run(story("h2c")).startswith(b"HTTP/1.1 200 ")


def test_an_endpoint_that_nobody_listens_at_is_passed_over():
    async def story():
        # Bound, and not listened at: whoever connects is refused.
        with bound_socket("127.0.0.1", 0) as closed:
            dead = Origin("http", "127.0.0.1", closed.getsockname()[1])
            async with through(echo, more=[dead, dead]) as port:
                return [await raw(port, get(method=m)) for m in ("GET", "POST") for _ in range(4)]

    for answer in asyncio.run(story()):
        assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_backend_that_nobody_reaches_is_a_bad_gateway():
    async def story():
        with bound_socket("127.0.0.1", 0) as closed:
            dead = Origin("http", "127.0.0.1", closed.getsockname()[1])
            http = HttpClient()
            between = Forwarding(lambda _asked: Way([dead]), http, random.Random(1))
            reply = await between.answer(HTTP, request())
            await http.close()
        return reply

    reply = asyncio.run(story())
    assert isinstance(reply, Response)
    assert reply.status == 502
    assert b"127.0.0.1" not in reply.body


def test_a_backend_that_speaks_something_else_or_nothing():
    async def answered_by(speak):
        server = await asyncio.start_server(speak, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        http = HttpClient()
        between = Forwarding(
            lambda _asked: Way([Origin("http", "127.0.0.1", port)]), http, random.Random(1)
        )
        reply = await between.answer(HTTP, request())
        await http.close()
        server.close()
        await server.wait_closed()
        return reply.status

    async def nonsense(_reader, writer):
        writer.write(b"SSH-2.0-OpenSSH\r\n")
        writer.close()

    async def silence(reader, writer):
        await reader.read(-1)
        writer.close()

    assert asyncio.run(answered_by(nonsense)) == 502
    assert virtual_time.run(answered_by(silence)) == 504
