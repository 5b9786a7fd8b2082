"""Passing an upgrade through a server in the middle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.http.messages import Connection, Handler, Reply, Request, Response, Upgrade
from sampan.core.http.relay import end_to_end, pass_upgrade, wants_upgrade
from sampan.core.http.server import Server

ASK = (("connection", "Upgrade"), ("upgrade", "SPDY/3.1"))


@asynccontextmanager
async def through(backend: Handler) -> AsyncIterator[tuple[HttpClient, str]]:
    """A client, a server in the middle, and `backend` behind it."""
    far, http, client = Server(backend), HttpClient(), HttpClient()
    far_port = await far.start("127.0.0.1", 0)

    async def middle(request: Request) -> Reply:
        url = f"http://127.0.0.1:{far_port}{request.path}"
        return await pass_upgrade(http, request, url, without=frozenset({"authorization"}))

    near = Server(middle)
    near_port = await near.start("127.0.0.1", 0)
    try:
        yield client, f"http://127.0.0.1:{near_port}"
    finally:
        for part in (client, http):
            await part.close()
        await near.stop(1.0)
        await far.stop(1.0)


def test_bytes_and_half_closes_pass_both_ways():
    async def talk(connection: Connection) -> None:
        await connection.write(b"hello ")
        heard = b""
        while data := await connection.read():
            heard += data
        await connection.write(b"you said " + heard)  # after their half-close
        assert connection.write_eof()

    async def backend(request: Request) -> Upgrade:
        chosen = ("x-stream-protocol-version", request.headers["x-stream-protocol-version"])
        return Upgrade((*ASK, chosen), talk)

    async def story():
        async with through(backend) as (client, url):
            offered = [("x-stream-protocol-version", "v4"), ("x-stream-protocol-version", "v3")]
            answer = await client.upgrade("POST", f"{url}/exec", headers=[*ASK, *offered])
            assert answer.status == 101
            assert answer.headers["upgrade"] == "SPDY/3.1"
            assert answer.headers["x-stream-protocol-version"] == "v4, v3"
            connection = answer.connection
            assert connection is not None
            assert await connection.read() == b"hello "
            await connection.write(b"one ")
            await connection.write(b"two")
            connection.write_eof()
            heard = b""
            while data := await connection.read():
                heard += data
            assert heard == b"you said one two"
            connection.close()

    asyncio.run(story())


def test_a_refusal_comes_back_as_it_is_and_credentials_do_not_travel():
    async def backend(request: Request) -> Response:
        assert "authorization" not in request.headers
        assert request.headers["x-other"] == "kept"
        return Response(403, (("content-type", "text/plain"),), b"no")

    async def story():
        async with through(backend) as (client, url):
            headers = [*ASK, ("authorization", "Bearer x"), ("x-other", "kept")]
            answer = await client.upgrade("POST", url, headers=headers)
            assert (answer.status, answer.body, answer.connection) == (403, b"no", None)

    asyncio.run(story())


@pytest.mark.parametrize("leaver", ["near", "far"])
def test_when_one_side_leaves_the_other_is_closed(leaver):
    async def story():
        met = asyncio.Queue[Connection]()
        ended = asyncio.Event()

        async def talk(connection: Connection) -> None:
            await met.put(connection)
            if leaver == "near":
                assert await connection.read() == b""
            ended.set()

        async def backend(request: Request) -> Upgrade:
            return Upgrade(ASK, talk)

        async with through(backend) as (client, url):
            connection = (await client.upgrade("POST", url, headers=ASK)).connection
            assert connection is not None
            await met.get()
            if leaver == "near":
                connection.close()
            else:
                assert await connection.read() == b""
                connection.close()
            await ended.wait()

    asyncio.run(story())


def test_a_backend_that_is_not_there_is_an_error():
    async def story():
        http = HttpClient()
        request = Request("GET", "/", "", {"connection": "upgrade", "upgrade": "x"})
        with pytest.raises(HttpError):
            await pass_upgrade(http, request, "http://127.0.0.1:1/")
        await http.close()

    asyncio.run(story())


def test_an_upgrade_is_asked_for_with_two_headers():
    def asks(**headers: str) -> bool:
        return wants_upgrade(Request("GET", "/", "", headers))

    assert asks(connection="keep-alive, Upgrade", upgrade="websocket")
    assert not asks(upgrade="websocket")
    assert not asks(connection="upgrade")


def test_headers_of_one_hop_stay_there():
    headers = {"connection": "keep-alive, X-Mine", "x-mine": "1", "te": "x", "accept": "a, b"}
    assert end_to_end(headers) == [("accept", "a, b")]
