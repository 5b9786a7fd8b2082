"""When an answer that lasts is over.

Job: tell somebody once, at the end of a stream or of a connection that was handed over.
Invariant: an answer that ends before its first byte has ended like any other.
"""

from collections.abc import AsyncIterator, Callable

from sampan.core.http.messages import Stream, Upgrade

Over = Callable[[], None]


def when_over(reply: Stream | Upgrade, over: Over) -> None:
    if isinstance(reply, Upgrade):
        reply.ended = over if reply.ended is None else _both(reply.ended, over)
        return
    tell = getattr(reply.chunks, "when_closed", None)
    if tell is not None:  # it tells by itself: a wrapper would cost every chunk something
        tell(over)
    else:
        reply.chunks = _HeardChunks(reply.chunks, over)


def _both(first: Over, second: Over) -> Over:
    def ended() -> None:
        first()
        second()

    return ended


class _HeardChunks:
    """Closing it before the first chunk is an end like any other: a generator would not hear."""

    def __init__(self, chunks: AsyncIterator[bytes], over: Over) -> None:
        self._chunks, self._over = chunks, over
        self._closed = False

    def __aiter__(self) -> "_HeardChunks":
        return self

    async def __anext__(self) -> bytes:
        return await self._chunks.__anext__()

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        close = getattr(self._chunks, "aclose", None)
        try:
            if close is not None:
                await close()
        finally:
            self._over()
