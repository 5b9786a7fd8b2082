"""A wire that can be cut: a TCP relay between a client and a server, for tests.

Job: pass bytes on; `cut()` drops every connection and refuses new ones, `mend()` takes them again.
Invariant: nothing of it outlives the `async with`.
"""

import asyncio
from types import TracebackType

from sampan.core.tasks import Tasks


class Relay:
    def __init__(self, port: int) -> None:
        self._to = port
        self._tasks = Tasks("relay")
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._is_cut = False
        self.port = 0

    async def __aenter__(self) -> "Relay":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._tasks.stop()

    def cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def mend(self) -> None:
        self._is_cut = False

    def lead_to(self, port: int) -> None:
        """From now on; connections stay where they are."""
        self._to = port

    def _refuses(self) -> bool:
        return self._is_cut

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses():
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()  # nobody listens there now
            return
        if self._refuses():  # meanwhile
            writer.transport.abort()
            there_writer.transport.abort()
            return
        self._writers |= {writer, there_writer}
        self._tasks.start("there", self._pass_on(reader, there_writer))
        self._tasks.start("back", self._pass_on(there_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # the other side has gone
        finally:
            self._writers.discard(writer)
            writer.transport.abort()
