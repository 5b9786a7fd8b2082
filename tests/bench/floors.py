"""What the same machine does without an API server in between: a bare HTTP server, the bare store.

Job: the figures that `make bench-api` divides by, measured in the same run.
"""

import asyncio
import multiprocessing
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop

from sampan.core import tls
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Reply, Request, Response, Stream
from sampan.core.http.server import Server
from sampan.core.tasks import all_of
from sampan.store.contract import RevisionMismatch, Store
from sampan.store.open import open_store
from tests.bench.load import Target

AT_ONCE = 16  # lines of a stream
_HEADERS = (("content-type", "application/json"),)


@contextmanager
def bare_http(pki: Path) -> Iterator[Target]:
    """The same HTTP server with a handler that does nothing, in a process of its own: `/` is an
    empty object, `/1000` a thousand bytes, `/watch/500/1000` a stream of 500 lines of so many, from
    the moment on when somebody asks for `/go`."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve_bare, args=(there, str(pki))
    )
    process.start()
    try:
        context = tls.client_context(ca_path=pki / "ca.crt")
        yield Target("127.0.0.1", here.recv(), context)
    finally:
        process.terminate()
        process.join()


def _serve_bare(parent: Connection, pki: str) -> None:
    bodies: dict[str, bytes] = {"go": b"{}"}
    started = [asyncio.Event()]

    async def answer(request: Request) -> Reply:
        parts = request.path.strip("/").split("/")
        if parts[0] == "watch":
            return Stream(200, _HEADERS, _lines(started[-1], int(parts[1]), int(parts[2])))
        if parts[0] == "go":
            started.pop().set()
            started.append(asyncio.Event())
        size = parts[0] or "2"
        body = bodies.get(size)
        if body is None:
            body = bodies[size] = b"x" * int(size)
        return Response(200, _HEADERS, body)

    async def serve() -> None:
        context: ssl.SSLContext = tls.server_context(f"{pki}/apiserver.crt", f"{pki}/apiserver.key")
        parent.send(await Server(answer, ssl_context=context).start("127.0.0.1", 0))
        await asyncio.Event().wait()

    uvloop.run(serve())


async def _lines(started: asyncio.Event, count: int, size: int) -> AsyncIterator[bytes]:
    """So many at a time as writers are at work in the measurement, a turn of the loop between."""
    line = b"x" * (size - 1) + b"\n"
    await started.wait()
    for first in range(0, count, AT_ONCE):
        yield line * min(AT_ONCE, count - first)
        await asyncio.sleep(0)


@asynccontextmanager
async def bare_store(workspace: Path) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite:///{workspace / 'bare.db'}", SystemClock())
    try:
        yield store
    finally:
        await store.close()


async def creates_per_second(store: Store, value: bytes, count: int, writers: int) -> float:
    async def writer(number: int) -> None:
        for one in range(count // writers):
            await store.create(f"/registry/pods/{number}/{one}", value)

    return await _per_second(count, [writer(number) for number in range(writers)])


async def contended_updates_per_second(
    store: Store, value: bytes, each: int, writers: int
) -> float:
    """Everybody writes one key: read, write on condition, again when somebody was faster."""
    key = "/registry/configmaps/counter"
    await store.create(key, value)

    async def writer() -> None:
        done = 0
        while done < each:
            found = await store.get(key)
            assert found is not None
            try:
                await store.update(key, value, found.revision)
            except RevisionMismatch:
                continue
            done += 1

    return await _per_second(each * writers, [writer() for _ in range(writers)])


async def deletes_per_second(store: Store, writers: int) -> float:
    """Of everything that `creates_per_second` has made."""
    page = await store.range("/registry/pods/")
    waiting = iter(page.entries)

    async def deleter() -> None:
        for entry in waiting:
            await store.delete(entry.key, entry.revision)

    return await _per_second(len(page.entries), [deleter() for _ in range(writers)])


async def _per_second(count: int, work: list) -> float:  # type: ignore[type-arg]  # coroutines
    began = time.monotonic()
    await all_of(work)
    return count / (time.monotonic() - began)
