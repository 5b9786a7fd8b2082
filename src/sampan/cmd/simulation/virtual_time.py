"""The virtual time of a cluster, in the hands of whoever may post to its clock.

Job: `GET /sampan/v1/clock`, and `POST` to `advance`, `step` and `settle` below it.
Invariant: one at a time moves the clock; it answers when everything that was due has happened.
Owner: `sampan up --clock virtual`, and the lab.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from sampan.api.errors import BadRequest
from sampan.api.objects import Obj, time_text
from sampan.api.rules.durations import long_seconds
from sampan.apiserver.server import ApiServer
from sampan.client.inprocess import Backend
from sampan.cmd.simulation.lease_readers import LeaseReaders
from sampan.core.clock import Clock
from sampan.core.durations import DurationError
from sampan.core.http.messages import Handler, Limits, Request
from sampan.core.virtual_time.loop import AT_ONCE_SECONDS, SteppedLoop, VirtualClock
from sampan.core.virtual_time.outside import Waited, outside_of
from sampan.core.virtual_time.patience import ARRIVAL_SECONDS, PATIENCE_SECONDS
from sampan.kubelet.node.leases_on_demand import LeasesOnDemand
from sampan.store.contract import Store

PATH = "/sampan/v1/clock"
_WAITING = ("clients", "patience")  # of every request that moves time
MOST_SECONDS = 10 * 366 * 86400.0  # of one step: a mistake in it would not end today
_FOR_EVER = 1e10
# A client's pace is real: no span of virtual time is too long for it.
PATIENT = Limits(header_seconds=_FOR_EVER, body_seconds=_FOR_EVER, idle_seconds=_FOR_EVER)


class VirtualTime:
    limits = PATIENT

    def __init__(self, loop: SteppedLoop) -> None:
        self._loop = loop
        self.clock: Clock = VirtualClock(loop)
        self._moving = asyncio.Lock()
        self._revision: Callable[[], int] = lambda: 0
        self._outside = outside_of(loop, lambda: self._revision(), _is_of_the_clock)
        self._readers: LeaseReaders | None = None

    def around(self, handler: Handler) -> Handler:
        """The same handler; time waits for clients who watch, and who reads leases finds them
        renewed."""
        self._readers = LeaseReaders(handler)
        return self._outside.around(self._readers)

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
        """Returns when nobody in the cluster has anything to do now, and its clients are quiet."""
        async with self._moving:
            await self._loop.settle(AT_ONCE_SECONDS, outside=True)

    async def step(self, most_seconds: float) -> None:
        """From timer to timer until something is written, at most so far."""
        async with self._moving:
            before = self._revision()
            await self._loop.step(lambda: self._revision() != before, most_seconds)

    def _state(self) -> Obj:
        return {"now": time_text(self.clock.now()), "seconds": self.clock.now()}

    async def _advance(self, body: Obj) -> Obj:
        _refuse_others(body, ("duration", "settle", *_WAITING))
        seconds = _span(body, "duration")
        return await self._waiting(body, partial(self._advanced, seconds, bool(body.get("settle"))))

    async def _advanced(self, seconds: float, settles: bool) -> None:
        await self.advance(seconds)
        if settles:
            await self.settle()

    async def _step(self, body: Obj) -> Obj:
        _refuse_others(body, ("most", *_WAITING))
        return await self._waiting(body, partial(self.step, _span(body, "most")))

    async def _settle(self, body: Obj) -> Obj:
        _refuse_others(body, _WAITING)
        return await self._waiting(body, self.settle)

    async def _waiting(self, body: Obj, move: Callable[[], Awaitable[None]]) -> Obj:
        """With regard to the clients that the request names; the answer says who was waited for."""
        outside, before = self._outside, {each.client: each for each in self._outside.report()}
        names = _names(body)
        patience = _span(body, "patience", PATIENCE_SECONDS)
        outside.patience_seconds = patience
        for name in names:
            outside.expect(name, patience if "patience" in body else ARRIVAL_SECONDS)
        await move()
        missing, outside.missing = outside.missing, []
        if missing:
            raise BadRequest(f"nobody called {', '.join(missing)} has come to watch")
        waited = [each for each in map(partial(_since, before), outside.report()) if each.waits]
        return {**self._state(), "waitedFor": [_waited_object(each) for each in waited]}


def _is_of_the_clock(request: Request) -> bool:
    return request.path.startswith(PATH)


def _span(body: Obj, word: str, default: float | None = None) -> float:
    """Raises BadRequest."""
    if default is not None and word not in body:
        return default
    try:
        seconds = long_seconds(body.get(word))
    except DurationError as error:
        raise BadRequest(f"{word}: {error}") from error
    if seconds > MOST_SECONDS:
        raise BadRequest(f"{word}: at most ten years at once")
    return seconds


def _names(body: Obj) -> list[str]:
    """Raises BadRequest."""
    found = body.get("clients", [])
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):
        raise BadRequest("clients: a list of names, or parts of them")
    return found


def _since(before: dict[str, Waited], after: Waited) -> Waited:
    """What there was of it in between."""
    known = before.get(after.client)
    if known is None:
        return after
    return replace(after, waits=after.waits - known.waits, seconds=after.seconds - known.seconds)


def _waited_object(waited: Waited) -> Obj:
    return {
        "client": waited.client,
        "watches": waited.watches,
        "waits": waited.waits,
        "seconds": round(waited.seconds, 3),
        "restless": waited.restless,
    }


def _refuse_others(body: Obj, known: tuple[str, ...]) -> None:
    for name in body:
        if name not in known:
            raise BadRequest(f"unknown field {name!r}: there is {', '.join(known) or 'none'}")
