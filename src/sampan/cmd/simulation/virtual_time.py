"""The virtual time of a cluster, in the hands of whoever may post to its clock.

Job: `GET /sampan/v1/clock`, and `POST` to `advance`, `step` and `settle` below it.
Invariant: one at a time moves the clock; it answers when everything that was due has happened.
Owner: `sampan up --clock virtual`, and the lab.
"""

import asyncio
from collections.abc import Callable

from sampan.api.errors import BadRequest
from sampan.api.objects import Obj, time_text
from sampan.api.rules.durations import long_seconds
from sampan.apiserver.server import ApiServer
from sampan.client.inprocess import Backend
from sampan.cmd.simulation.lease_readers import LeaseReaders
from sampan.core.clock import Clock
from sampan.core.durations import DurationError
from sampan.core.http.messages import Handler, Limits
from sampan.core.virtual_time.loop import AT_ONCE_SECONDS, SteppedLoop, VirtualClock
from sampan.core.virtual_time.outside import Outside
from sampan.kubelet.node.leases_on_demand import LeasesOnDemand
from sampan.store.contract import Store

PATH = "/sampan/v1/clock"
MOST_SECONDS = 10 * 366 * 86400.0  # of one step: a mistake in it would not end today
_FOR_EVER = 1e10
# A client's pace is real: no span of virtual time is too long for it.
PATIENT = Limits(header_seconds=_FOR_EVER, body_seconds=_FOR_EVER, idle_seconds=_FOR_EVER)


class VirtualTime:
    limits = PATIENT
    bookmark_seconds = 3600.0  # nobody loses a connection, and an hour is nothing

    def __init__(self, loop: SteppedLoop) -> None:
        self._loop = loop
        self.clock: Clock = VirtualClock(loop)
        self._moving = asyncio.Lock()
        self._revision: Callable[[], int] = lambda: 0
        outside = Outside(lambda: self._revision())
        self._around = outside.around
        self._readers: LeaseReaders | None = None
        loop.awaits_outside = outside.awaited

    def around(self, handler: Handler) -> Handler:
        """The same handler; clients who watch get a moment to react whenever time moves, and who
        reads leases finds them renewed."""
        self._readers = LeaseReaders(handler)
        return self._around(self._readers)

    def renew_on_demand(self, leases: LeasesOnDemand) -> None:
        """A week is many heartbeats, and nobody reads most of them."""
        assert self._readers is not None, "the API is served before there are nodes"
        self._readers.leases = leases

    def between(self, user: str, backend: Backend) -> Backend:
        """Parts of the cluster are inside of its time."""
        return backend

    def offer(self, server: ApiServer, store: Store) -> None:
        """From now on, to whoever the API server lets."""
        self._revision = lambda: store.revision
        server.add_document(PATH, self._document)
        server.add_action(f"{PATH}/advance", self._advance)
        server.add_action(f"{PATH}/step", self._step)
        server.add_action(f"{PATH}/settle", self._settle)

    async def _document(self, rest: str) -> Obj | None:
        return self._state() if not rest.strip("/") else None

    def let_go(self) -> None:
        """Time passes by itself: the end has come."""
        self._loop.let_go()

    async def advance(self, seconds: float) -> None:
        """Returns when everything has happened that is due until then."""
        async with self._moving:
            await self._loop.advance(seconds)

    async def settle(self) -> None:
        """Returns when nobody in the cluster has anything to do now."""
        async with self._moving:
            await self._loop.settle(AT_ONCE_SECONDS)

    async def step(self, most_seconds: float) -> None:
        """From timer to timer until something is written, at most so far."""
        async with self._moving:
            loop, before = self._loop, self._revision()
            until = loop.time() + most_seconds
            while self._revision() == before and loop.time() < until:
                await loop.advance(min(await loop.idle(), until - loop.time()))
            await loop.settle(0.0)

    def _state(self) -> Obj:
        return {"now": time_text(self.clock.now()), "seconds": self.clock.now()}

    async def _advance(self, body: Obj) -> Obj:
        await self.advance(_span(body, "duration"))
        return self._state()

    async def _step(self, body: Obj) -> Obj:
        await self.step(_span(body, "most"))
        return self._state()

    async def _settle(self, body: Obj) -> Obj:
        _refuse_others(body, ())
        await self.settle()
        return self._state()


def _span(body: Obj, word: str) -> float:
    """Raises BadRequest."""
    _refuse_others(body, (word,))
    try:
        seconds = long_seconds(body.get(word))
    except DurationError as error:
        raise BadRequest(f"{word}: {error}") from error
    if seconds > MOST_SECONDS:
        raise BadRequest(f"{word}: at most ten years at once")
    return seconds


def _refuse_others(body: Obj, known: tuple[str, ...]) -> None:
    for name in body:
        if name not in known:
            raise BadRequest(f"unknown field {name!r}: there is {', '.join(known) or 'none'}")
