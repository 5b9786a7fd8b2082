"""The bytes of a watch, in whichever encoding.

Job: a watch's events, its error and its end → the chunks of a reply.
Invariant: closing it before the first byte closes the watch all the same.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from sampan.api.calls import Event
from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.apiserver.watch.watch_stream import WatchStream

PIECE_BYTES, PIECE_EVENTS = 1 << 18, 200  # of events that wait, at once


class WatchEncoder(Protocol):
    def events(self, events: Sequence[Event]) -> bytes:
        """What is sent for them."""

    def error(self, status: Obj) -> bytes:
        """What a watch ends with."""


class WatchChunks:
    def __init__(self, watching: WatchStream, encoder: WatchEncoder) -> None:
        self._watching, self._encoder = watching, encoder
        self._ended = False
        self._taken: list[Event] = []  # the next one last
        self._told_of_end: tuple[Callable[[], None], ...] = ()

    def __aiter__(self) -> "WatchChunks":
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        if self._taken:
            return self._piece()
        try:
            events = await self._watching.next()
        except ApiError as error:
            self._ended = True
            return self._encoder.error(error.status())
        if not events:
            self._ended = True
            raise StopAsyncIteration
        if len(events) == 1:
            return self._encoder.events(events)
        self._taken = list(reversed(events))
        return self._piece()

    def _piece(self) -> bytes:
        """Of events that wait: however large they are, and however many."""
        some: list[Event] = []
        size = 0
        while self._taken and size < PIECE_BYTES and len(some) < PIECE_EVENTS:
            some.append(self._taken.pop())
            size += some[-1].item.size
        return self._encoder.events(some)

    def when_closed(self, told: Callable[[], None]) -> None:
        self._told_of_end = (*self._told_of_end, told)

    async def aclose(self) -> None:
        self._ended = True
        self._watching.close()
        told, self._told_of_end = self._told_of_end, ()
        for tell in told:
            tell()
