"""A gRPC server that begins with its first caller: until then it is one listening socket.

Job: listen at a unix socket; when somebody connects, load gRPC, serve beside that socket, and carry
    bytes between the two.
Invariant: nobody who never calls costs more than a file descriptor.
Invariant: the socket at `path` is one file from start to stop: callers that watch its directory
    take a new one for a restart of the server.
Owner: whoever starts it stops it; both sockets go then.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from sampan.core.log import get_logger
from sampan.core.tasks import all_of

if TYPE_CHECKING:
    from sampan.core.grpc.socket_server import Methods, SocketServer

log = get_logger(__name__)

_PIECE_BYTES = 64 * 1024


class ActivatedServer:
    def __init__(self, path: str, methods: "Callable[[], Methods]", *, mode: int = 0o600) -> None:
        """`methods` is called when somebody has come."""
        self.path, self._methods, self._mode = path, methods, mode
        directory, name = os.path.split(path)
        self._inner = f"{directory}/.{name}"
        self._listener: asyncio.Server | None = None
        self._beginning = asyncio.Lock()
        self._server: SocketServer | None = None

    async def start(self) -> None:
        """In place of whatever is at the path. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self._listener = await asyncio.start_unix_server(self._accept, self.path)
        os.chmod(self.path, self._mode)

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for path in (self.path, self._inner):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        if self._server is not None:
            await self._server.stop()
            self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._begin()
            inner_reader, inner_writer = await asyncio.open_unix_connection(self._inner)
        except OSError as error:
            log.warning("gRPC call failed", path=self.path, error=error)
            writer.close()
            return
        with contextlib.suppress(OSError):
            await all_of([_carry(reader, inner_writer), _carry(inner_reader, writer)])

    async def _begin(self) -> None:
        async with self._beginning:
            if self._server is None and self._listener is not None:
                # Beside the loop: it takes longer than anybody may hold the loop.
                module = "sampan.core.grpc.socket_server"
                found = await asyncio.to_thread(import_module, module)
                server: SocketServer = found.SocketServer(self._inner, self._methods())
                await server.start()
                self._server = server


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    finally:
        writer.close()
