"""What a command in a simulated container does, towards whoever runs it.

Job: speak as a runtime's streaming server does (SPDY/3.1, or the channels of a WebSocket): when
    every stream is there, write what the script says, then the status, and end.
Invariant: what the client writes is read and means nothing.
"""

from collections.abc import Sequence

import orjson

from sampan.core import spdy
from sampan.core.http import Connection, Headers
from sampan.core.websocket import WebSocket
from sampan.kubelet.contracts.local_streams import exit_status
from sampan.kubelet.contracts.runtime import ExecResult

SPDY = "SPDY/3.1"
PROTOCOL = "v4.channel.k8s.io"
HEADERS: Headers = (
    ("connection", "Upgrade"),
    ("upgrade", SPDY),
    ("x-stream-protocol-version", PROTOCOL),
)


CHANNELS = {"stdout": b"\x01", "stderr": b"\x02", "error": b"\x03"}


async def play_on_websocket(
    result: ExecResult, kinds: Sequence[str], connection: Connection
) -> None:
    socket = WebSocket(connection)
    for kind, text in _said(result).items():
        if kind in kinds and text:
            await socket.send(CHANNELS[kind] + text)
    await socket.close()


def _said(result: ExecResult) -> dict[str, bytes]:
    status = orjson.dumps(exit_status(result.exit_code))
    return {"stdout": result.stdout, "stderr": result.stderr, "error": status}


class PlayedExec:
    def __init__(self, result: ExecResult, kinds: Sequence[str]) -> None:
        """`kinds`: of the streams that the client opens."""
        self._result, self._expected = result, len(kinds)
        self._session = spdy.Session(client=False)
        self._streams: dict[str, int] = {}

    async def run(self, connection: Connection) -> None:
        while len(self._streams) < self._expected and (data := await connection.read()):
            for event in self._session.feed(data):
                if isinstance(event, spdy.Opened):
                    self._streams[event.headers.get("streamtype", "")] = event.stream
                    await connection.write(self._session.reply(event.stream))
        if len(self._streams) == self._expected:
            await self._play(connection)
        connection.close()

    async def _play(self, connection: Connection) -> None:
        for kind, text in _said(self._result).items():
            if kind in self._streams and text:
                await connection.write(self._session.data(self._streams[kind], text))
        for stream in self._streams.values():
            await connection.write(self._session.reset(stream))
