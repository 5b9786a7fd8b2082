"""A load generator: many connections, each with one request under way, over TLS.

Job: send prepared requests as fast as answers come back, and say how many per second.
It is as thin as Python allows, since it shares the machine with what it measures.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httptools


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    port: int
    tls: ssl.SSLContext | None

    @classmethod
    def of(cls, url: str, tls: ssl.SSLContext | None) -> "Target":
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        return cls(parts.hostname, parts.port, tls)


def request_bytes(target: Target, method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: {target.host}:{target.port}\r\n"
    head += "accept: application/json\r\n"
    if body:
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


class _Client(asyncio.Protocol):
    def __init__(self, next_request: Callable[[], bytes | None]) -> None:
        self._next_request = next_request
        self._parser = httptools.HttpResponseParser(self)
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 300:
            self.ended.set_exception(AssertionError(f"the server answered {status}"))
            self._transport.close()
            return
        self._parser = httptools.HttpResponseParser(self)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(error or ConnectionError("the server hung up"))

    def _send(self) -> None:
        request = self._next_request()
        if request is None:
            self.ended.set_result(None)
            self._transport.close()
            return
        self._transport.write(request)


async def rate(target: Target, requests: list[bytes], connections: int) -> float:
    """Requests per second, each of `requests` sent once."""
    waiting = iter(requests)
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    clients = []
    for _ in range(connections):
        _, client = await loop.create_connection(
            lambda: _Client(lambda: next(waiting, None)), target.host, target.port, ssl=target.tls
        )
        clients.append(client)
    for client in clients:
        await client.ended
    return len(requests) / (time.monotonic() - began)


class _Timed(asyncio.Protocol):
    """One request after the other on one connection; bodies are counted, not kept."""

    def __init__(self, request: bytes, count: int) -> None:
        self._request, self._left = request, count
        self.seconds: list[float] = []
        self.body_bytes = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self.body_bytes += len(data)

    def on_message_complete(self) -> None:
        self.seconds.append(time.monotonic() - self._began)
        assert self._parser.get_status_code() == 200
        self._left -= 1
        if self._left:
            self._send()
        else:
            self.ended.set_result(None)
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(error or ConnectionError("the server hung up"))

    def _send(self) -> None:
        self.body_bytes = 0
        self._parser = httptools.HttpResponseParser(self)
        self._began = time.monotonic()
        self._transport.write(self._request)


async def seconds_each(target: Target, request: bytes, count: int) -> tuple[list[float], int]:
    """How long each of `count` answers took, to the last byte; and the bytes of one."""
    _, client = await asyncio.get_running_loop().create_connection(
        lambda: _Timed(request, count), target.host, target.port, ssl=target.tls
    )
    await client.ended
    return client.seconds, client.body_bytes


class _Lines(asyncio.Protocol):
    """Lines of one endless answer."""

    def __init__(self, request: bytes, wanted: int) -> None:
        self._request, self._wanted = request, wanted
        self._parser = httptools.HttpResponseParser(self)
        loop = asyncio.get_running_loop()
        self.answered: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_headers_complete(self) -> None:
        assert self._parser.get_status_code() == 200
        self.answered.set_result(None)

    def on_body(self, data: bytes) -> None:
        self._wanted -= data.count(b"\n")
        if self._wanted <= 0 and not self.ended.done():
            self.ended.set_result(None)
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(error or ConnectionError("the server hung up"))


async def lines_per_second(
    target: Target,
    request: bytes,
    readers: int,
    each: int,
    start: Callable[[], Awaitable[object]],
) -> float:
    """At all readers together, from `start` on, which makes the lines come."""
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(readers):
        _, client = await loop.create_connection(
            lambda: _Lines(request, each), target.host, target.port, ssl=target.tls
        )
        clients.append(client)
    for client in clients:
        await client.answered
    began = time.monotonic()
    await start()
    for client in clients:
        await client.ended
    return readers * each / (time.monotonic() - began)
