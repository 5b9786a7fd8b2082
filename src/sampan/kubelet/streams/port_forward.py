"""port-forward: a client's streams and the ports of a pod, connected.

Job: pairs of SPDY streams (data and error, by their request id) ↔ connections that the runtime
    makes.
Invariant: a port that nobody listens on is said on the error stream; other streams go on.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

from sampan.core.fast_dataclass import dataclass
from sampan.core.http import spdy
from sampan.core.http.messages import Connection, Reply, Request, Response, Upgrade
from sampan.core.tasks import Tasks
from sampan.kubelet.streams.channels import SPDY, chosen_protocol

PROTOCOL = "portforward.k8s.io"
_CHUNK_BYTES = 64 * 1024
_WAITING_BYTES = 4 << 20  # of one stream that its reader does not take

Connect = Callable[[int], Awaitable[socket.socket]]  # to a port of the pod; raises OSError


def upgrade(request: Request, connect: Connect) -> Reply:
    if request.headers.get("upgrade", "").upper() != SPDY:
        return Response(400, (("content-type", "text/plain"),), b"Upgrade request required\n")
    if chosen_protocol(request, (PROTOCOL,)) is None:
        text = b"unable to upgrade: unable to negotiate protocol\n"
        return Response(403, (("content-type", "text/plain"),), text)

    async def take_over(connection: Connection) -> None:
        await _PortForward(connection, connect).run()

    headers = (
        ("connection", "Upgrade"), ("upgrade", SPDY), ("x-stream-protocol-version", PROTOCOL),
    )  # fmt: skip
    return Upgrade(headers, take_over)


@dataclass(slots=True)
class _Pair:
    port: int
    error: int = 0
    data: int = 0


class _PortForward:
    def __init__(self, connection: Connection, connect: Connect) -> None:
        self._connection, self._connect = connection, connect
        self._session = spdy.Session(client=False)
        self._pairs: dict[str, _Pair] = {}
        self._incoming: dict[int, asyncio.Queue[bytes]] = {}  # by data stream; b"" ends it
        self._tasks = Tasks("port-forward")
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        try:
            while data := await self._connection.read():
                for event in self._session.feed(data):
                    await self._take(event)
        except ConnectionError:
            return
        finally:
            await self._tasks.stop()
            self._connection.close()

    async def _take(self, event: spdy.Event) -> None:
        match event:
            case spdy.Opened(stream, headers):
                await self._write(self._session.reply(stream))
                self._pair_up(stream, headers)
            case spdy.Data(stream, payload, fin) if stream in self._incoming:
                if payload:
                    await self._incoming[stream].put(payload)
                if fin:
                    await self._incoming[stream].put(b"")
            case spdy.Reset(stream) if stream in self._incoming:
                await self._incoming[stream].put(b"")
            case spdy.Ping() if not self._session.is_answer(event):
                await self._write(self._session.ping(event.number))

    def _pair_up(self, stream: int, headers: object) -> None:
        assert isinstance(headers, dict)
        try:
            port = int(headers.get("port", ""))
        except ValueError:
            return
        # Clients of before the header number their streams one after the other.
        kind = headers.get("streamtype", "")
        request = headers.get("requestid") or str(stream if kind == "error" else stream - 2)
        pair = self._pairs.setdefault(request, _Pair(port))
        if kind == "error":
            pair.error = stream
        elif kind == "data":
            pair.data = stream
            self._incoming[stream] = asyncio.Queue(_WAITING_BYTES // _CHUNK_BYTES)
        if pair.error and pair.data:
            del self._pairs[request]
            self._tasks.start("port", self._forward(pair))

    async def _forward(self, pair: _Pair) -> None:
        try:
            target = await self._connect(pair.port)
        except OSError as error:
            text = (
                f"failed to connect to localhost:{pair.port} inside the pod's network namespace: "
                f"{error.strerror or error}"
            )
            await self._end(pair, text.encode())
            return
        outgoing = self._tasks.start("out", self._copy_out(pair, target))
        try:
            await self._copy_back(pair, target)
        finally:
            outgoing.cancel()
            target.close()
            await self._end(pair, b"")

    async def _copy_out(self, pair: _Pair, target: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while data := await self._incoming[pair.data].get():
                await loop.sock_sendall(target, data)
            target.shutdown(socket.SHUT_WR)

    async def _copy_back(self, pair: _Pair, target: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while data := await loop.sock_recv(target, _CHUNK_BYTES):
                await self._write(self._session.data(pair.data, data))

    async def _end(self, pair: _Pair, text: bytes) -> None:
        self._incoming.pop(pair.data, None)
        frames = self._session.data(pair.error, text, fin=True)
        with contextlib.suppress(ConnectionError):
            await self._write(frames + self._session.data(pair.data, b"", fin=True))

    async def _write(self, data: bytes) -> None:
        async with self._turn:
            await self._connection.write(data)
