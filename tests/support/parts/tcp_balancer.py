"""A load balancer for TCP, for tests: `python -m …tcp_balancer PORT HOST:PORT HOST:PORT`.

Job: each connection goes to the next server that takes it.
"""

import asyncio
import itertools
import sys
from collections.abc import Sequence

from sampan.core.tasks import all_of

CONNECT_SECONDS = 2.0
Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def serve(port: int, servers: Sequence[str]) -> None:
    turns = itertools.count()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = next(turns)
        for offset in range(len(servers)):
            there = await _connected(servers[(first + offset) % len(servers)])
            if there is not None:
                await all_of([_pass_on(reader, there[1]), _pass_on(there[0], writer)])
                return
        writer.transport.abort()

    async with await asyncio.start_server(accept, "0.0.0.0", port) as server:
        await server.serve_forever()


async def _connected(server: str) -> Wire | None:
    host, _, port = server.rpartition(":")
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(host, int(port))
    except (OSError, TimeoutError):
        return None


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # one side has gone
    finally:
        writer.transport.abort()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2:]))
