"""The client against our own server, and against servers that misbehave."""

import asyncio
import gc
import socket
import ssl
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from sampan.core.http.client import HttpClient
from sampan.core.http.errors import AddressNotAllowed, HttpError, HttpTimeout
from sampan.core.http.link import Link
from sampan.core.http.messages import Connection, Handler, Request, Response, Stream, Upgrade
from sampan.core.http.origin import Origin, Target
from sampan.core.http.server import Server
from sampan.core.ip_addresses import is_proxyable
from sampan.core.tls import client_context
from tests.support.parts.certificates import Authority

PLAIN = (("content-type", "text/plain"),)
LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


async def echo(request: Request) -> Response:
    shown = f"{request.method} {request.path}?{request.query} ".encode()
    return Response(200, PLAIN, shown + request.body)


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[tuple[HttpClient, str, Server]]:
    server = Server(handler)
    port = await server.start("127.0.0.1", 0)
    client = HttpClient()
    try:
        yield client, f"http://127.0.0.1:{port}", server
    finally:
        await client.close()
        await server.stop(1.0)


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def scripted(*answers: bytes | None) -> AsyncIterator[tuple[HttpClient, str, list[bytes]]]:
    """A server that reads a head and answers with the next script, on whichever connection the
    head came. None closes instead; after the last script every connection is closed."""
    script, heads = list(answers), list[bytes]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while script:
                heads.append(await reader.readuntil(b"\r\n\r\n"))
                answer = script.pop(0)
                if answer is None:
                    break
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    client = HttpClient()
    try:
        yield client, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
    finally:
        await client.close()
        server.close()
        await server.wait_closed()


@LOOPS
def test_requests_share_a_kept_connection(run):
    async def story():
        async with serving(echo) as (client, url, server):
            for number in range(3):
                answer = await client.request("PUT", f"{url}/a?n={number}", body=b"hi")
                assert (answer.status, answer.body) == (200, f"PUT /a?n={number} hi".encode())
                assert answer.headers["content-type"] == "text/plain"
            assert len(server.connections.open) == 1

    run(story())


@LOOPS
def test_a_body_ends_with_its_connection_even_if_tls_was_not_closed_properly(run, tmp_path):
    """As Python's own http.server does; the two event loops notice it in different ways."""
    pair = Authority(tmp_path).issue("server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert_path, pair.key_path)

    def serve(listening: socket.socket) -> None:
        with context.wrap_socket(listening.accept()[0], server_side=True) as connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nall of it")

    async def story():
        with socket.create_server(("127.0.0.1", 0)) as listening:
            thread = threading.Thread(target=serve, args=(listening,))
            thread.start()
            client = HttpClient(ssl_context=client_context(verify=False))
            url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
            assert (await client.request("GET", url)).body == b"all of it"
            await client.close()
            thread.join()

    run(story())


def test_head_and_204_have_no_body():
    async def handler(request: Request) -> Response:
        return Response(204) if request.path == "/none" else await echo(request)

    async def story():
        async with serving(handler) as (client, url, server):
            head = await client.request("HEAD", f"{url}/x")
            assert (head.status, head.body) == (200, b"")
            assert head.headers["content-length"] == "9"
            assert (await client.request("GET", f"{url}/none")).status == 204
            assert (await client.request("GET", url)).body == b"GET /? "
            assert len(server.connections.open) == 1

    asyncio.run(story())


@LOOPS
def test_a_stream_gives_chunks_as_they_come(run):
    async def story():
        more = asyncio.Event()

        async def chunks() -> AsyncIterator[bytes]:
            yield b"one"
            await more.wait()
            yield b"two"

        async def handler(request: Request) -> Stream:
            return Stream(200, PLAIN, chunks())

        async with serving(handler) as (client, url, server):
            stream = await client.stream("GET", url)
            assert stream.status == 200
            seen = []
            async for chunk in stream:
                seen.append(chunk)
                more.set()
            assert seen == [b"one", b"two"]
            await stream.aclose()  # after the end: changes nothing
            await client.request("GET", url)
            assert len(server.connections.open) == 1

    run(story())


def test_cookies_of_an_answer_are_not_joined():
    async def handler(request: Request) -> Response:
        return Response(200, (("set-cookie", "a=1, 2"), ("set-cookie", "b=3")))

    async def story():
        async with serving(handler) as (client, url, _):
            stream = await client.stream("GET", url)
            await stream.aclose()
            assert stream.cookies == ["a=1, 2", "b=3"]

    asyncio.run(story())


def test_a_stream_that_is_closed_early_ends_the_connection():
    async def story():
        gone = asyncio.Event()

        async def chunks() -> AsyncIterator[bytes]:
            try:
                yield b"one"
                await asyncio.Event().wait()
            finally:
                gone.set()

        async def handler(request: Request) -> Stream:
            return Stream(200, PLAIN, chunks())

        async with serving(handler) as (client, url, _):
            stream = await client.stream("GET", url)
            await stream.aclose()
            await gone.wait()

    asyncio.run(story())


def test_a_stream_that_breaks_off_is_an_error():
    async def story():
        half = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
        async with scripted(half) as (client, url, _):
            stream = await client.stream("GET", url)
            with pytest.raises(HttpError, match="closed"):
                assert [chunk async for chunk in stream] == []
            await stream.aclose()

    asyncio.run(story())


def test_an_answer_without_length_ends_with_the_connection():
    async def story():
        async with scripted(b"HTTP/1.1 200 OK\r\n\r\nhello") as (client, url, _):
            assert (await client.request("GET", url)).body == b"hello"

    asyncio.run(story())


def test_lines_may_end_without_a_carriage_return():
    """As Go's reader has it: what is probed may be a shell script."""
    sloppy = b"HTTP/1.0 200 OK\r\nContent-type: text/plain\nContent-length: 2\n\nhi"

    async def story():
        async with scripted(sloppy) as (client, url, _):
            answer = await client.request("GET", url)
            assert (answer.status, answer.body) == (200, b"hi")
            assert answer.headers["content-type"] == "text/plain"

    asyncio.run(story())


def test_100_continue_is_not_the_answer():
    async def story():
        both = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"
        async with scripted(both) as (client, url, _):
            answer = await client.request("POST", url, body=b"x")
            assert (answer.status, answer.body) == (201, b"ok")

    asyncio.run(story())


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_a_get_on_a_dead_kept_connection_is_sent_again():
    async def story():
        async with scripted(OK, None, OK) as (client, url, heads):
            await client.request("GET", url)
            assert (await client.request("GET", url)).body == b"ok"
            assert len(heads) == 3

    asyncio.run(story())


def test_a_post_is_never_sent_twice():
    async def story():
        async with scripted(OK, None, OK) as (client, url, heads):
            await client.request("GET", url)
            with pytest.raises(HttpError):
                await client.request("POST", url, body=b"x")
            assert len(heads) == 2

    asyncio.run(story())


def test_a_get_on_a_fresh_connection_is_sent_once():
    async def story():
        async with scripted(None, OK) as (client, url, heads):
            with pytest.raises(HttpError):
                await client.request("GET", url)
            assert len(heads) == 1

    asyncio.run(story())


@pytest.mark.parametrize(
    "nonsense",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nX: " + b"v" * 2_000_000,
    ],
)
def test_what_is_no_answer_is_an_error(nonsense):
    async def story():
        async with scripted(nonsense) as (client, url, _):
            with pytest.raises(HttpError):
                await client.request("GET", url)

    asyncio.run(story())


@LOOPS
def test_who_answers_before_it_was_asked_answers_the_first_request(run):
    """A server that is full refuses whoever connects, and does not wait for what he wants."""

    async def story():
        with socket.create_server(("127.0.0.1", 0)) as server:
            origin = Origin("http", "127.0.0.1", server.getsockname()[1])
            loop = asyncio.get_running_loop()
            _, link = await loop.create_connection(
                lambda: Link(lambda link: None, origin), "127.0.0.1", origin.port
            )
            accepted, _ = server.accept()
            with accepted:
                accepted.sendall(b"HTTP/1.1 503 Full\r\nContent-Length: 4\r\n\r\nfull")
                for _ in range(10):
                    await asyncio.sleep(0)
                await link.ask("GET", b"GET / HTTP/1.1\r\n\r\n")
                assert (link.status, await link.next_chunk()) == (503, b"full")
            link.abort()

    run(story())


def test_a_second_answer_to_one_request_is_not_taken_for_the_next():
    async def story():
        async with scripted(OK + OK.replace(b"ok", b"no"), OK) as (client, url, _):
            await client.request("GET", url)
            await asyncio.sleep(0)
            assert (await client.request("GET", url)).body == b"ok"

    asyncio.run(story())


def test_an_answer_that_does_not_come_is_a_timeout():
    async def story():
        async def handler(request: Request) -> Response:
            await asyncio.Event().wait()
            raise AssertionError

        async with serving(handler) as (client, url, _):
            with pytest.raises(HttpTimeout, match=r"GET http.*no answer within 0.02 s"):
                await client.request("GET", url, timeout_seconds=0.02)
            with pytest.raises(HttpTimeout):
                await client.stream("GET", url, timeout_seconds=0.02)

    asyncio.run(story())


def test_nobody_at_the_address_is_an_error():
    async def story():
        client = HttpClient(connect_seconds=1.0)
        with pytest.raises(HttpError, match=r"dial 127\.0\.0\.1:1"):
            await client.request("GET", "http://127.0.0.1:1/")
        with pytest.raises(HttpError, match="not an HTTP URL"):
            await client.request("GET", "ftp://x/")
        await client.close()
        with pytest.raises(HttpError, match="closed"):
            await client.request("GET", "http://127.0.0.1:1/")

    asyncio.run(story())


@pytest.mark.parametrize("bad", ["/a b", "/a\r\nX: y"])
def test_a_url_cannot_smuggle_a_header(bad):
    async def story():
        async with serving(echo) as (client, url, _):
            with pytest.raises((ValueError, HttpError)):
                await client.request("GET", url, headers=[("x", bad + "\r\ny: z")])
            with pytest.raises((ValueError, HttpError)):
                await client.request("GET", f"{url}/a b")

    asyncio.run(story())


@LOOPS
def test_an_upgrade_gives_a_raw_connection(run):
    async def greet(connection: Connection) -> None:
        await connection.write(b"hello")
        while data := await connection.read():
            await connection.write(data.upper())
        await connection.write(b"bye")

    async def handler(request: Request) -> Upgrade | Response:
        if "upgrade" not in request.headers:
            return Response(400, PLAIN, b"upgrade required")
        return Upgrade((("connection", "Upgrade"), ("upgrade", "x")), greet)

    async def story():
        async with serving(handler) as (client, url, _):
            refused = await client.upgrade("POST", url)
            assert (refused.status, refused.connection, refused.body) == (
                400,
                None,
                b"upgrade required",
            )
            headers = [("connection", "Upgrade"), ("upgrade", "x")]
            taken = await client.upgrade("POST", url, headers=headers)
            assert taken.status == 101
            connection = taken.connection
            assert connection is not None
            assert await connection.read() == b"hello"
            await connection.write(b"abc")
            assert await connection.read() == b"ABC"
            connection.write_eof()
            assert await connection.read() == b"bye"
            assert await connection.read() == b""
            connection.close()

    run(story())


SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"


def test_an_upgrade_uses_a_connection_that_is_at_hand():
    """A TLS handshake less on the way to a node; a dead connection is noticed and replaced."""

    async def story():
        async with scripted(OK, SWITCH) as (client, url, heads):
            await client.request("GET", url)
            await client.warm(url)  # there is one already
            taken = await client.upgrade("POST", url)
            assert taken.status == 101
            taken.connection.close()
            assert len(heads) == 2
        async with scripted(OK, None, SWITCH) as (client, url, heads):
            await client.request("GET", url)
            taken = await client.upgrade("POST", url)
            assert taken.status == 101
            taken.connection.close()
            assert len(heads) == 3

    asyncio.run(story())


def test_what_became_a_raw_connection_leaves_no_cycle():
    """Each exec would keep a TLS connection to its node until the garbage collector finds it."""

    async def story():
        async with scripted(OK, SWITCH) as (client, url, _):
            await client.request("GET", url)
            [link] = map(weakref.ref, client._links)
            taken = await client.upgrade("POST", url)
            await asyncio.sleep(0)
            assert link() is None
            taken.connection.close()

    gc.disable()
    try:
        asyncio.run(story())
    finally:
        gc.enable()


def test_a_connection_can_be_made_before_it_is_needed():
    async def story():
        async with serving(echo) as (client, url, server):
            await client.warm(url)
            assert len(client._idle) == 1
            assert (await client.request("GET", url)).body == b"GET /? "
            assert len(server.connections.open) == 1
        await client.warm(url)  # closed: nothing happens

        lonely = HttpClient()
        await lonely.warm(url)  # nobody there: nothing happens either
        await lonely.close()

    asyncio.run(story())


def test_an_upgrade_that_ends_at_once_is_read_to_its_end():
    async def story():
        async with scripted(SWITCH + b"all there is") as (client, url, _):
            headers = [("connection", "Upgrade"), ("upgrade", "x")]
            connection = (await client.upgrade("GET", url, headers=headers)).connection
            assert connection is not None
            assert await connection.read() == b"all there is"
            assert await connection.read() == b""
            connection.close()

    asyncio.run(story())


def test_an_upgrade_that_nobody_asked_for_is_an_error():
    async def story():
        async with scripted(SWITCH) as (client, url, _):
            with pytest.raises(HttpError, match="nobody asked"):
                await client.request("GET", url)

    asyncio.run(story())


def test_a_cancelled_request_leaves_no_connection_behind():
    async def story():
        started = asyncio.Event()

        async def handler(request: Request) -> Response:
            started.set()
            await asyncio.Event().wait()
            raise AssertionError

        async with serving(handler) as (client, url, server):
            loop = asyncio.get_running_loop()
            asking = loop.create_task(client.request("GET", url))
            await started.wait()
            asking.cancel()
            await asyncio.wait([asking])
            while server.connections.open:
                await asyncio.sleep(0)

    asyncio.run(story())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"])
def test_an_address_that_is_not_allowed_is_not_connected_to(host):
    async def story():
        async with serving(echo) as (_, url, _):
            client = HttpClient(allows=is_proxyable)
            with pytest.raises(AddressNotAllowed):
                await client.request("GET", f"http://{host}:{url.rpartition(':')[2]}/")
            await client.close()

    asyncio.run(story())


def test_the_path_of_a_target_does_not_change_its_server():
    async def story():
        async with serving(echo) as (client, url, _):
            port = int(url.rpartition(":")[2])
            target = Target(Origin("http", "127.0.0.1", port), "//elsewhere:1/@x?y")
            assert (await client.request("GET", target)).status == 200
            with pytest.raises(HttpError, match="not an HTTP URL"):
                await client.request("GET", f"http://a@127.0.0.1:{port}/")
            with pytest.raises(HttpError, match="not an HTTP URL"):
                await client.request("GET", "http://127.0.0.1:99999/")

    asyncio.run(story())
