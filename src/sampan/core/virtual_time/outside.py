"""Clients outside of an event loop with virtual time, who may still react to what happened.

Job: count the streams that clients read; say whether they were told of something since last asked.
Invariant: a stream counts from its first chunk until it is closed.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sampan.core.http.messages import Handler, Reply, Request, Stream


class Outside:
    def __init__(self, revision: Callable[[], int]) -> None:
        """`revision`: how much has happened so far."""
        self._now = revision
        self._streams = 0
        self._revision = 0

    def awaited(self) -> bool:
        before, self._revision = self._revision, self._now()
        return self._streams > 0 and before != self._revision

    def around(self, handler: Handler) -> Handler:
        """The same handler; the streams that it answers with are counted."""

        async def handle(request: Request) -> Reply:
            reply = await handler(request)
            if isinstance(reply, Stream):
                return Stream(reply.status, reply.headers, self._counted(reply.chunks))
            return reply

        return handle

    async def _counted(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._streams += 1
        try:
            async with closing(chunks):
                async for chunk in chunks:
                    yield chunk
        finally:
            self._streams -= 1


@asynccontextmanager
async def closing(chunks: AsyncIterator[bytes]) -> AsyncIterator[None]:
    """Whoever stops early lets the server's watch go."""
    try:
        yield
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
