"""The server over real sockets on loopback."""

import asyncio
import gc
import logging
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import uvloop

from sampan.core import tls
from sampan.core.clock import SystemClock
from sampan.core.http.clients import Clients
from sampan.core.http.messages import (
    Connection,
    Handler,
    Limits,
    Request,
    Response,
    Stream,
    Upgrade,
)
from sampan.core.http.raw_connection import RawConnection
from sampan.core.http.server import Server
from sampan.core.http.server_connection import ServerConnection
from sampan.core.http.wire import RequestReader
from tests.support import virtual_time
from tests.support.parts.certificates import Authority

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
PLAIN = (("content-type", "text/plain"),)


async def echo(request: Request) -> Response:
    return Response(200, PLAIN, f"{request.method} {request.path} ".encode() + request.body)


class Client:
    """A socket, and words for what a test sends and expects."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def answer(self) -> tuple[int, bytes]:
        head = (await self.head()).lower()
        status = int(head.split()[1])
        if b"content-length: " not in head:
            return status, b""
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        return status, await self.reader.readexactly(length)

    async def rest(self) -> bytes:
        return await self.reader.read()

    def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def serving(handler: Handler, limits: Limits | None = None) -> AsyncIterator["Running"]:
    server = Server(handler, limits=limits)
    port = await server.start("127.0.0.1", 0)
    running = Running(server, port)
    try:
        yield running
    finally:
        for client in running.clients:
            client.close()
        await server.stop(1.0)
        assert not server.connections.open
        assert len(server.connections.tasks) == 0


class Running:
    def __init__(self, server: Server, port: int) -> None:
        self.server, self.port = server, port
        self.clients: list[Client] = []

    async def client(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self.clients.append(client)
        return client


LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@LOOPS
def test_a_connection_carries_many_requests(run):
    async def story():
        async with serving(echo) as running:
            client = await running.client()
            for path in (b"/a", b"/b"):
                client.send(b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n\r\n")
                assert await client.answer() == (200, b"GET " + path + b" ")
            client.send(b"POST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
            assert await client.answer() == (200, b"POST /c hi")

    run(story())


@LOOPS
def test_pipelined_requests_are_answered_in_order(run):
    async def slow_first(request: Request) -> Response:
        if request.path == "/0":
            await asyncio.sleep(0.01)
        return await echo(request)

    async def story():
        async with serving(slow_first) as running:
            client = await running.client()
            paths = [b"/%d" % i for i in range(50)]
            client.send(b"".join(b"GET " + p + b" HTTP/1.1\r\nHost: a\r\n\r\n" for p in paths))
            for path in paths:
                assert await client.answer() == (200, b"GET " + path + b" ")

    run(story())


def test_head_is_answered_with_the_length_and_without_the_body():
    async def story():
        async with serving(echo) as running:
            client = await running.client()
            client.send(b"HEAD /h HTTP/1.1\r\nHost: a\r\n\r\n" + GET)
            assert b"content-length: 8\r\n" in await client.head()
            assert await client.answer() == (200, b"GET / ")

    asyncio.run(story())


class Halves:
    about_bytes = 1

    def __iter__(self):
        yield from (b"one half, ", b"the other")


async def in_pieces(_: Request) -> Response:
    return Response(200, PLAIN, pieces=Halves())


def test_a_body_in_pieces_is_sent_in_chunks_and_the_connection_goes_on():
    async def story():
        async with serving(in_pieces) as running:
            client = await running.client()
            for _ in range(2):
                client.send(GET)
                head = await client.head()
                assert b"transfer-encoding: chunked\r\n" in head
                assert b"content-length" not in head
                body = await client.reader.readuntil(b"0\r\n\r\n")
                assert body == b"a\r\none half, \r\n9\r\nthe other\r\n0\r\n\r\n"

    asyncio.run(story())


def test_a_client_that_knows_no_chunks_gets_pieces_as_one_body():
    async def story():
        async with serving(in_pieces) as running:
            client = await running.client()
            client.send(b"GET / HTTP/1.0\r\n\r\n")
            whole = await client.rest()
            assert b"content-length: 19\r\n" in whole
            assert whole.endswith(b"\r\n\r\none half, the other")

    asyncio.run(story())


def test_http_1_0_is_answered_and_closed():
    async def story():
        async with serving(echo) as running:
            client = await running.client()
            client.send(b"GET / HTTP/1.0\r\n\r\n")
            whole = await client.rest()
            assert b"connection: close\r\n" in whole
            assert whole.endswith(b"\r\n\r\nGET / ")

    asyncio.run(story())


def test_a_client_that_asks_first_gets_100_before_it_sends():
    async def story():
        async with serving(echo) as running:
            client = await running.client()
            client.send(
                b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
            )
            assert (await client.head()).startswith(b"HTTP/1.1 100 ")
            client.send(b"hi")
            assert await client.answer() == (200, b"POST / hi")

    asyncio.run(story())


def test_100_waits_for_the_answers_that_are_due_before_it():
    async def story():
        go = asyncio.Event()

        async def handler(request: Request) -> Response:
            await go.wait()
            return await echo(request)

        async with serving(handler) as running:
            client = await running.client()
            client.send(GET)
            expecting = b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\n" + expecting)
            await asyncio.sleep(0)
            go.set()
            assert await client.answer() == (200, b"GET / ")
            assert (await client.head()).startswith(b"HTTP/1.1 100 ")
            client.send(b"hi")
            assert await client.answer() == (200, b"POST / hi")

    asyncio.run(story())


@LOOPS
def test_a_body_that_is_too_large_is_answered_by_the_handler_and_ends_the_connection(run):
    """[A4] the API server words the 413 itself."""

    async def handler(request: Request) -> Response:
        return Response(413 if request.body_too_large else 200)

    async def story():
        async with serving(handler, Limits(body_bytes=10)) as running:
            client = await running.client()
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n")
            client.send(b"x" * 500000)
            assert await client.answer() == (413, b"")
            assert await client.rest() == b""

    run(story())


def test_what_is_malformed_gets_400_after_the_answers_before_it():
    async def story():
        async with serving(echo) as running:
            client = await running.client()
            client.send(GET + b"nonsense\r\n\r\n" + GET)
            assert await client.answer() == (200, b"GET / ")
            status, why = await client.answer()
            assert status == 400
            assert why.startswith(b"400 Bad Request: ")
            assert await client.rest() == b""

    asyncio.run(story())


def test_a_head_that_is_too_large_gets_431():
    async def story():
        async with serving(echo, Limits(header_bytes=1000)) as running:
            client = await running.client()
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"v" * 2000)
            client.send(b"\r\n\r\n")
            assert (await client.answer())[0] == 431

    asyncio.run(story())


@pytest.mark.parametrize(
    "part",
    [
        b"G",
        b"GET / HTTP/1.1\r\nHost: a\r\nX",
        GET.replace(b"\r\n\r\n", b"\r\nContent-Length: 9\r\n\r\nx"),
    ],
)
def test_a_request_that_does_not_arrive_in_time_gets_408(part):
    async def story():
        limits = Limits(header_seconds=0.02, body_seconds=0.02)
        async with serving(echo, limits) as running:
            client = await running.client()
            client.send(part)
            assert (await client.answer())[0] == 408
            assert await client.rest() == b""

    asyncio.run(story())


def test_single_bytes_do_not_buy_more_time():
    async def story():
        async with serving(echo, Limits(header_seconds=0.05)) as running:
            client = await running.client()

            async def drip() -> None:
                with suppress(ConnectionError):
                    client.send(b"GET / HTTP/1.1\r\n")
                    while not client.reader.at_eof():
                        client.send(b"a")
                        await client.writer.drain()
                        await asyncio.sleep(0.005)

            dripping = asyncio.get_running_loop().create_task(drip())
            assert (await client.answer())[0] == 408
            dripping.cancel()

    asyncio.run(story())


def test_an_idle_connection_is_closed_without_a_word():
    async def story():
        async with serving(echo, Limits(idle_seconds=0.03)) as running:
            client = await running.client()
            client.send(GET)
            assert (await client.answer())[0] == 200
            assert await client.rest() == b""
            fresh = await running.client()
            assert await fresh.rest() == b""

    virtual_time.run(story())


def test_a_slow_handler_is_not_an_idle_connection():
    async def slow(request: Request) -> Response:
        await asyncio.sleep(1.5)
        return await echo(request)

    async def story():
        async with serving(slow, Limits(idle_seconds=1.0)) as running:
            client = await running.client()
            client.send(GET)
            assert (await client.answer())[0] == 200

    virtual_time.run(story())


@LOOPS
def test_a_client_that_leaves_cancels_its_handler(run):
    async def story():
        started, cancelled = asyncio.Event(), asyncio.Event()

        async def handler(request: Request) -> Response:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            raise AssertionError

        async with serving(handler) as running:
            client = await running.client()
            client.send(GET)
            await started.wait()
            client.close()
            await cancelled.wait()

    run(story())


def endless(closed: asyncio.Event, first: bytes = b"one") -> AsyncIterator[bytes]:
    async def chunks() -> AsyncIterator[bytes]:
        try:
            yield first
            await asyncio.Event().wait()
        finally:
            closed.set()

    return chunks()


@LOOPS
def test_a_stream_is_chunked_and_the_connection_goes_on_after_it(run):
    async def chunks() -> AsyncIterator[bytes]:
        for part in (b"one", b"", b"three"):
            yield part

    async def handler(request: Request) -> Stream:
        return Stream(200, PLAIN, chunks())

    async def story():
        async with serving(handler) as running:
            client = await running.client()
            for _ in range(2):
                client.send(GET)
                assert b"transfer-encoding: chunked\r\n" in await client.head()
                assert (
                    await client.reader.readuntil(b"0\r\n\r\n")
                    == b"3\r\none\r\n5\r\nthree\r\n0\r\n\r\n"
                )

    run(story())


@pytest.mark.parametrize(("length", "is_kept"), [(6, True), (7, False), (5, False)])
def test_a_stream_of_a_known_length_says_it_and_is_that_long(length, is_kept):
    async def chunks() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async def handler(request: Request) -> Stream:
        return Stream(200, PLAIN, chunks(), length=length)

    async def story():
        async with serving(handler) as running:
            client = await running.client()
            client.send(GET)
            head = await client.head()
            assert f"content-length: {length}\r\n".encode() in head
            assert b"transfer-encoding" not in head
            if is_kept:
                assert await client.reader.readexactly(length) == b"onetwo"
                client.send(GET)
                await client.head()
            else:
                with suppress(ConnectionResetError):
                    assert await client.reader.read() in (b"", b"onetwo")

    asyncio.run(story())


def test_a_stream_to_http_1_0_is_plain_bytes_until_the_end():
    async def chunks() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async def handler(request: Request) -> Stream:
        return Stream(200, PLAIN, chunks())

    async def story():
        async with serving(handler) as running:
            client = await running.client()
            client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert (await client.rest()).endswith(b"\r\n\r\nonetwo")

    asyncio.run(story())


@LOOPS
def test_a_client_that_leaves_closes_its_stream(run):
    async def story():
        closed = asyncio.Event()

        async def handler(request: Request) -> Stream:
            return Stream(200, PLAIN, endless(closed))

        async with serving(handler) as running:
            client = await running.client()
            client.send(GET)
            await client.reader.readuntil(b"one\r\n")
            client.close()
            await closed.wait()

    run(story())


@LOOPS
def test_a_stream_that_never_waits_ends_when_its_client_leaves(run):
    async def story():
        yielded, ended = 0, asyncio.Event()

        async def chunks() -> AsyncIterator[bytes]:
            nonlocal yielded
            yield b"first"
            client.close()  # between two chunks, while nobody else runs
            try:
                while yielded < 100_000:
                    yielded += 1
                    yield b"more"
            finally:
                ended.set()

        async def handler(request: Request) -> Stream:
            return Stream(200, PLAIN, chunks())

        async with serving(handler) as running:
            client = socket.create_connection(("127.0.0.1", running.port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(GET)
            await ended.wait()
            assert yielded < 100_000

    run(story())


def test_a_stream_whose_source_is_gone_breaks_off(caplog):
    async def chunks() -> AsyncIterator[bytes]:
        yield b"one"
        raise ConnectionResetError("the node is gone")

    async def handler(request: Request) -> Stream:
        return Stream(200, PLAIN, chunks())

    async def story():
        async with serving(handler) as running:
            client = await running.client()
            client.send(GET)
            with suppress(ConnectionError):  # a reset may overtake what was sent before it
                assert not (await client.rest()).endswith(b"0\r\n\r\n")

    asyncio.run(story())
    assert caplog.text == ""


def test_head_closes_the_stream_at_once():
    async def story():
        async def handler(request: Request) -> Stream:
            return Stream(200, PLAIN, endless(asyncio.Event()))

        async with serving(handler) as running:
            client = await running.client()
            client.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" * 2)
            await client.head()
            await client.head()

    asyncio.run(story())


@LOOPS
def test_a_stream_waits_for_a_slow_client(run):
    async def story():
        written = 0

        async def chunks() -> AsyncIterator[bytes]:
            nonlocal written
            while True:
                written += 1
                yield b"x" * 65536

        async def handler(request: Request) -> Stream:
            return Stream(200, PLAIN, chunks())

        async with serving(handler, Limits(pending_bytes=100_000)) as running:
            client = await running.client()
            client.send(GET)
            await client.head()
            before = -1
            while before != written:  # until it stands still
                before = written
                await asyncio.sleep(0.02)
            await client.reader.readexactly(65536 * written)
            assert written > before

    run(story())


@LOOPS
def test_stopping_lets_requests_finish_and_ends_streams_cleanly(run):
    async def story():
        closed, started = asyncio.Event(), asyncio.Event()

        async def handler(request: Request) -> Response | Stream:
            if request.path == "/stream":
                return Stream(200, PLAIN, endless(closed))
            started.set()
            await asyncio.sleep(0.02)
            return await echo(request)

        async with serving(handler) as running:
            streaming, asking = await running.client(), await running.client()
            idle = await running.client()
            streaming.send(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
            await streaming.reader.readuntil(b"one\r\n")
            asking.send(GET)
            await started.wait()
            await running.server.stop(5.0)
            assert closed.is_set()
            assert await streaming.rest() == b"0\r\n\r\n"
            whole = await asking.rest()
            assert b"connection: close\r\n" in whole
            assert whole.endswith(b"GET / ")
            assert await idle.rest() == b""
            with pytest.raises(OSError, match=r"refused|Connect"):
                await running.client()

    run(story())


def test_what_does_not_finish_in_the_grace_is_cut():
    async def story():
        started, cancelled = asyncio.Event(), asyncio.Event()

        async def handler(request: Request) -> Response:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            raise AssertionError

        async with serving(handler) as running:
            client = await running.client()
            client.send(GET)
            await started.wait()
            await running.server.stop(0.01)
            assert cancelled.is_set()

    asyncio.run(story())


@LOOPS
def test_an_upgrade_hands_over_the_raw_connection(run):
    async def shout(connection: Connection) -> None:
        while data := await connection.read():
            await connection.write(data.upper())

    async def handler(request: Request) -> Upgrade:
        return Upgrade((("connection", "Upgrade"), ("upgrade", "SPDY/3.1")), shout)

    async def story():
        async with serving(handler) as running:
            client = await running.client()
            client.send(
                b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nearly"
            )
            assert (await client.head()).startswith(b"HTTP/1.1 101 ")
            assert await client.reader.readexactly(5) == b"EARLY"
            client.send(b"late")
            assert await client.reader.readexactly(4) == b"LATE"
            client.writer.write_eof()  # a half-close is an end of reading, not of writing
            assert await client.rest() == b""

    run(story())


def test_an_upgrade_that_is_not_taken_is_an_ordinary_request():
    async def story():
        async with serving(echo) as running:
            client = await running.client()
            upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
            client.send(upgrade + GET)
            assert await client.answer() == (200, b"GET / ")
            assert await client.answer() == (200, b"GET / ")

    asyncio.run(story())


def test_stopping_ends_raw_connections():
    async def take_over(connection: Connection) -> None:
        await connection.read()

    async def handler(request: Request) -> Upgrade:
        return Upgrade((("connection", "Upgrade"), ("upgrade", "x")), take_over)

    async def story():
        async with serving(handler) as running:
            client = await running.client()
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
            await client.head()
            await running.server.stop(5.0)
            assert await client.rest() == b""

    asyncio.run(story())


@pytest.mark.parametrize("asked", [True, False])
def test_an_upgrade_is_told_to_be_over_even_if_it_could_not_begin(asked, caplog):
    ended = []

    async def take_over(connection: Connection) -> None:
        ended.append("began")

    async def handler(request: Request) -> Upgrade:
        headers = (("connection", "Upgrade"), ("upgrade", "x"))
        return Upgrade(headers, take_over, ended=lambda: ended.append("ended"))

    async def story():
        async with serving(handler) as running:
            client = await running.client()
            upgrade = b"Connection: Upgrade\r\nUpgrade: x\r\n" if asked else b""
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + upgrade + b"\r\n")
            await client.head()
            await client.rest()

    asyncio.run(story())
    assert ended == (["began", "ended"] if asked else ["ended"])


def test_a_handler_that_fails_is_a_500_and_a_line_in_the_log(caplog):
    async def handler(request: Request) -> Response:
        raise ZeroDivisionError("oh")

    async def story():
        async with serving(handler) as running:
            client = await running.client()
            client.send(GET)
            assert await client.answer() == (500, b"500 Internal Server Error: internal error\n")

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert "ZeroDivisionError: oh" in caplog.text


def test_a_port_in_use_is_the_systems_own_error():
    async def story():
        async with serving(echo) as running:
            with pytest.raises(OSError, match="in use"):
                await Server(echo).start("127.0.0.1", running.port)

    asyncio.run(story())


@LOOPS
def test_the_verified_client_certificate_reaches_the_handler(run, tmp_path):
    """[A1]"""
    authority = Authority(tmp_path)
    ours, theirs = authority.issue("server"), authority.issue("alice")

    async def handler(request: Request) -> Response:
        return Response(200, PLAIN, request.peer_certificate or b"none")

    async def ask(server_port: int, context) -> bytes:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server_port, ssl=context, server_hostname="localhost"
        )
        client = Client(reader, writer)
        client.send(GET)
        _, body = await client.answer()
        client.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        return body

    async def story():
        context = tls.server_context(ours.cert_path, ours.key_path, authority.ca_path)
        server = Server(handler, ssl_context=context)
        port = await server.start("127.0.0.1", 0)
        anonymous = tls.client_context(ca_path=authority.ca_path)
        assert await ask(port, anonymous) == b"none"
        named = tls.client_context(
            ca_path=authority.ca_path, cert_path=theirs.cert_path, key_path=theirs.key_path
        )
        assert b"alice" in await ask(port, named)
        await server.stop(1.0)

    run(story())


@LOOPS
def test_a_certificate_that_ends_ends_its_connection(run, tmp_path):
    """[A1] also on a connection that was made in time"""
    authority = Authority(tmp_path)
    ours, theirs = authority.issue("server"), authority.issue("alice")
    clock = Calendar()
    context = tls.client_context(
        ca_path=authority.ca_path, cert_path=theirs.cert_path, key_path=theirs.key_path
    )

    async def handler(_request: Request) -> Response:
        return Response(200, PLAIN, b"hello")

    async def story():
        served = tls.server_context(ours.cert_path, ours.key_path, authority.ca_path)
        server = Server(handler, ssl_context=served, clock=clock)
        port = await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="localhost"
        )
        client = Client(reader, writer)
        client.send(GET)
        assert await client.answer() == (200, b"hello")
        clock.at = 4_800_000_000.0  # in 2122
        client.send(GET)
        assert (await client.answer())[0] == 401
        client.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        await server.stop(1.0)

    run(story())


class Calendar(SystemClock):
    at = 0.0

    def now(self) -> float:
        return self.at or super().now()


async def sent(port: int, *parts: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0.02)
        async with asyncio.timeout(60):
            return await reader.read(4096)
    except (ConnectionError, TimeoutError):
        return b""
    finally:
        writer.transport.abort()


def test_the_body_of_a_stranger_is_not_read():
    """A large one: who sends it is looked at on the head, and nothing of it is kept."""
    bodies = []

    async def handler(request: Request) -> Response:
        bodies.append((len(request.body), request.body_too_large))
        return Response(401 if request.body_too_large else 200)

    async def wants(request: Request) -> bool:
        assert request.body == b""
        return request.headers.get("authorization") == "good" and request.path == "/x"

    async def story():
        server = Server(handler, wants_body=wants, limits=Limits(asked_bytes=1000))
        port = await server.start("127.0.0.1", 0)
        head = b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n"
        stranger = await sent(port, head + b"\r\n", b"x" * 50_000)
        assert stranger.startswith(b"HTTP/1.1 401")
        good = head + b"authorization: good\r\n\r\n"
        known = await sent(port, good, b"x" * 60_000, b"x" * 40_000)
        assert known.startswith(b"HTTP/1.1 200")
        chunk = b"800\r\n" + b"x" * 2048 + b"\r\n"
        chunked = b"POST /x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
        assert (await sent(port, chunked, chunk, chunk)).startswith(b"HTTP/1.1 401")
        small = b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n"
        assert (await sent(port, small, b"abc")).startswith(b"HTTP/1.1 200")
        await server.stop(1.0)

    asyncio.run(story())
    assert bodies == [(0, True), (100_000, False), (0, True), (3, False)]


def test_connections_and_bodies_are_bounded_for_each_client():
    async def handler(request: Request) -> Response:
        return Response(200)

    async def story():
        limits = Limits(connections_per_client=3, bodies_bytes_per_client=10_000)
        server = Server(handler, limits=limits)
        port = await server.start("127.0.0.1", 0)
        ask = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
        kept = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for reader, writer in kept:
            writer.write(ask)
            assert (await reader.read(100)).startswith(b"HTTP/1.1 200")
        assert await sent(port, ask) == b""
        kept.pop()[1].transport.abort()
        await asyncio.sleep(0.05)
        assert (await sent(port, ask)).startswith(b"HTTP/1.1 200")
        head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9000\r\n\r\n"
        kept[0][1].write(head + b"x" * 8000)
        await asyncio.sleep(0.05)
        assert (await sent(port, head + b"x" * 8000)).startswith(b"HTTP/1.1 429")
        kept[0][1].write(b"x" * 1000)
        assert (await kept[0][0].read(100)).startswith(b"HTTP/1.1 200")
        assert (await sent(port, head + b"x" * 9000)).startswith(b"HTTP/1.1 200")
        for _, writer in kept:
            writer.transport.abort()
        await server.stop(1.0)

    asyncio.run(story())


def test_what_clients_hold_is_forgotten_when_they_leave():
    clients = Clients(Limits(connections=2, bodies_bytes=10))
    assert clients.came("a")
    assert clients.came("b")
    assert not clients.came("c")
    clients.left("c", 0)
    assert clients.holds("a", 8)
    assert not clients.holds("b", 8)
    clients.left("b", 8)
    clients.left("a", 8)
    assert clients.came("c")
    assert clients.holds("c", 10)


def kept() -> list[object]:
    """Of connections; the garbage collector's list has what is there, reachable or not."""
    ours = (ServerConnection, RequestReader, RawConnection)
    return [item for item in gc.get_objects() if type(item) in ours]


async def answered(client: Client) -> None:
    client.send(GET)
    assert (await client.answer())[0] == 200


async def in_a_stream(client: Client) -> None:
    client.send(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
    await client.reader.readuntil(b"one")


UPGRADE = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"


async def handed_over(client: Client) -> None:
    client.send(UPGRADE)
    await client.head()


@LOOPS
@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("use", [answered, in_a_stream, handed_over])
def test_a_connection_that_is_gone_waits_for_no_garbage_collector(run, use):
    async def take_over(connection: Connection) -> None:
        while await connection.read():
            pass

    async def handler(request: Request) -> Response | Stream | Upgrade:
        if request.path == "/stream":
            return Stream(200, PLAIN, endless(asyncio.Event()))
        if "upgrade" in request.headers:
            return Upgrade((("connection", "upgrade"), ("upgrade", "echo")), take_over)
        return await echo(request)

    async def story():
        async with serving(handler) as running:
            client = await running.client()
            await use(client)
            assert kept()
            client.close()
            async with asyncio.timeout(60):
                while kept():
                    await asyncio.sleep(0.01)

    run(story())


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()
