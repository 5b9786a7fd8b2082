"""Watches over WebSocket, for browsers.

Job: each event, a line of the watch's stream, becomes a text message.
Invariant: the watch ends when the client closes or goes, even while nothing happens.
"""

from collections.abc import AsyncIterator

from sampan.api.errors import BadRequest
from sampan.core.http.messages import Connection, Request, Stream, Upgrade
from sampan.core.http.websocket import TEXT, WebSocket, accept, protocols_of, why_not
from sampan.core.tasks import all_of


class _Over(Exception):
    """One side of it has ended."""


def watch_messages(request: Request, watch: Stream) -> Upgrade:
    """Raises BadRequest; the caller closes the watch then."""
    wrong, protocols = why_not(request), protocols_of(request)
    if wrong:
        raise BadRequest(wrong)
    if len(protocols) > 1:
        raise BadRequest("unable to upgrade: offer one WebSocket protocol, or none")

    async def take_over(connection: Connection) -> None:
        socket = WebSocket(connection)
        try:
            await all_of([_send(socket, watch.chunks), _hear(socket)])
        except (_Over, ConnectionError):
            return
        finally:
            await watch.chunks.aclose()  # type: ignore[attr-defined]  # WatchChunks has it

    return Upgrade(accept(request, protocols[0] if protocols else ""), take_over)


async def _send(socket: WebSocket, chunks: AsyncIterator[bytes]) -> None:
    async for chunk in chunks:
        for line in chunk.splitlines():
            await socket.send(line, TEXT)
    await socket.close()


async def _hear(socket: WebSocket) -> None:
    """Until it closes; what it says otherwise is nothing to a watch."""
    while await socket.receive() is not None:
        continue
    raise _Over
