"""Many watchers over HTTPS: what it takes to open them, to keep them, and to tell all of an event.

Job: connections of their own, as clients have them, each with a watch of ConfigMaps.
"""

import asyncio
from pathlib import Path

from sampan.client import kubeconfig
from sampan.core.tasks import all_of
from sampan.core.tls import client_context

AT_ONCE = 50
WATCH = "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0"
LONGEST_SECONDS = 300.0


class Watchers:
    def __init__(self, path: Path) -> None:
        found = kubeconfig.load(str(path), {}, "/").connection()
        self._host, _, port = found.server.removeprefix("https://").rpartition(":")
        self._port = int(port)
        self._tls = client_context(ca_data=found.ca, pair_data=(found.certificate, found.key))
        self._streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def open(self, count: int) -> None:
        """Returns when each has been answered."""
        async with asyncio.timeout(LONGEST_SECONDS):
            while len(self._streams) < count:
                some = min(AT_ONCE, count - len(self._streams))
                self._streams += await all_of(self._open() for _ in range(some))

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        writer.write(f"GET {WATCH} HTTP/1.1\r\nhost: {self._host}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        return reader, writer

    async def heard(self, text: bytes) -> None:
        """Returns when all have been told of it."""
        async with asyncio.timeout(LONGEST_SECONDS):
            for reader, _ in self._streams:
                while text not in await reader.readline():
                    pass

    async def close(self) -> None:
        for _, writer in self._streams:
            writer.close()
        self._streams.clear()
