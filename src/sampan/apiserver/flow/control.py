"""Priority and fairness: whoever floods the server waits; others do not.

Job: classify a request, get it a seat in its priority level, or refuse it with 429.
Invariant: long-running requests (exec, attach, port-forward, proxied) hold no seat; a watch holds
    one until its first events are on their way.
Invariant: when nobody waits, a request pays for one dictionary look-up and two counters.
"""

import asyncio
import hashlib
import math
from collections.abc import Callable

from sampan.api.errors import TooManyRequests
from sampan.api.objects import Obj, name_of, uid_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.flow.levels import Level, LevelSettings, Queue, Seat
from sampan.apiserver.flow.schemas import Flow, Schemas
from sampan.apiserver.request import RequestInfo
from sampan.core.clock import Clock
from sampan.core.metrics import Metrics

MOST = 4096  # classifications that are remembered
WAIT_SECONDS = 15.0
OBJECTS_PER_SEAT = 100
MOST_SEATS = 10


class FlowControl:
    def __init__(
        self,
        total_seats: int,
        schemas: Callable[[], list[Obj]],
        levels: Callable[[], list[Obj]],
        count: Callable[[RequestInfo], int],
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """`count`: how many objects a list would look at."""
        self._total, self._read_schemas, self._read_levels = total_seats, schemas, levels
        self._count, self._clock = count, clock
        self._schemas: Schemas | None = None
        self._levels: dict[str, Level] = {}
        self._known: dict[tuple[object, ...], tuple[Flow, Level, int]] = {}
        labels = ("flow_schema", "priority_level")
        self._dispatched = metrics.counter(
            "apiserver_flowcontrol_dispatched_requests_total",
            "Number of requests executed by API Priority and Fairness subsystem", labels,
        )  # fmt: skip
        self._rejected = metrics.counter(
            "apiserver_flowcontrol_rejected_requests_total",
            "Number of requests rejected by API Priority and Fairness subsystem",
            (*labels, "reason"),
        )
        queued = metrics.gauge(
            "apiserver_flowcontrol_current_inqueue_requests",
            "Number of requests currently pending in queues of the API Priority and Fairness "
            "subsystem",
            ("priority_level",),
        )
        queued.read_from(lambda: {(k,): float(v.queued) for k, v in self._levels.items()})
        seats = metrics.gauge(
            "apiserver_flowcontrol_current_executing_seats",
            "Concurrency (number of seats) occupied by the currently executing requests",
            ("priority_level",),
        )
        seats.read_from(lambda: {(k,): float(v.in_use) for k, v in self._levels.items()})

    def changed(self) -> None:
        """A schema or a level is another one now."""
        self._schemas = None
        self._known.clear()

    async def seat(self, user: User, info: RequestInfo | None, path: str, verb: str) -> Seat:
        """Raises TooManyRequests. Whoever gets a seat must leave it."""
        flow, level, flow_hash = self._classified(user, info, path, verb)
        seats = 1
        if verb == "list" and info is not None and not level.settings.exempt:
            seats = min(MOST_SEATS, 1 + self._count(info) // OBJECTS_PER_SEAT)
            seats = min(seats, max(1, level.settings.seats))
        now = self._clock.monotonic()
        seat = level.take(flow_hash, seats, now)
        if seat is None:
            seat = await self._waited(flow, level, flow_hash, seats)
        self._dispatched.add(flow.schema, flow.level)
        return seat

    async def _waited(self, flow: Flow, level: Level, flow_hash: int, seats: int) -> Seat:
        place = level.line_up(flow_hash, seats)
        if place is None:
            reason = "queue-full" if level.settings.queues else "concurrency-limit"
            raise self._refused(flow, reason)
        future, queue = place
        handle = self._loop_timer(future)
        called = False
        try:
            await future
            called = True
        except TimeoutError as error:
            raise self._refused(flow, "time-out") from error
        finally:
            handle.cancel()
            if not called:
                self._gone(level, future, queue, seats)
        return level.dispatched(queue, seats, self._clock.monotonic())

    def _gone(self, level: Level, future: "asyncio.Future[None]", queue: Queue, seats: int) -> None:
        """Whoever waited does not any more; if it was called at that moment, its seat is free."""
        level.give_up(future, queue)
        if future.done() and not future.cancelled() and future.exception() is None:
            now = self._clock.monotonic()
            level.dispatched(queue, seats, now).leave(now)

    def _loop_timer(self, future: "asyncio.Future[None]") -> asyncio.TimerHandle:
        def late() -> None:
            if not future.done():
                future.set_exception(TimeoutError())

        return future.get_loop().call_later(WAIT_SECONDS, late)

    def _refused(self, flow: Flow, reason: str) -> TooManyRequests:
        self._rejected.add(flow.schema, flow.level, reason)
        return TooManyRequests("Too many requests, please try again later.", retry_after_seconds=1)

    def _classified(
        self, user: User, info: RequestInfo | None, path: str, verb: str
    ) -> tuple[Flow, Level, int]:
        resource = info.resource if info is not None else None
        key: tuple[object, ...] = (
            user.name, user.groups, verb,
            (resource.group, resource.plural, info.subresource, info.namespace)
            if info is not None and resource is not None else path,
        )  # fmt: skip
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST:
                self._known.clear()
            known = self._known[key] = self._found(user, info, path, verb)
        return known

    def _found(
        self, user: User, info: RequestInfo | None, path: str, verb: str
    ) -> tuple[Flow, Level, int]:
        if self._schemas is None:
            self._schemas = Schemas(self._read_schemas())
            self._rebuild()
        flow = self._schemas.flow(user, verb, info, path)
        if flow is None or flow.level not in self._levels:
            flow = Flow("catch-all", "", "catch-all", user.name)
        level = self._levels.get(flow.level)
        if level is None:  # not even catch-all: nothing has been bootstrapped yet
            settings = LevelSettings(flow.level, "", True, 0, 0, 0, 0, 0, 0)
            level = self._levels[flow.level] = Level(settings, self._to_borrow)
        digest = hashlib.sha256(f"{flow.schema}\0{flow.distinguisher}".encode()).digest()
        return flow, level, int.from_bytes(digest[:8], "big")

    def _rebuild(self) -> None:
        """Levels that are there keep who sits and waits in them, if they are what they were."""
        wanted = {one.name: one for one in level_settings(self._read_levels(), self._total)}
        for name, settings in wanted.items():
            known = self._levels.get(name)
            if known is None or known.settings != settings:
                if known is not None and not known.in_use and not known.queued:
                    known = None
                if known is None:
                    self._levels[name] = Level(settings, self._to_borrow)
                elif known.settings.queues == settings.queues:
                    known.settings = settings
        for name in [one for one in self._levels if one not in wanted]:
            if not self._levels[name].in_use and not self._levels[name].queued:
                del self._levels[name]

    def _to_borrow(self, borrower: Level) -> int:
        lent = sum(one.idle_lendable() for one in self._levels.values() if one is not borrower)
        return min(borrower.settings.borrowable, lent)


def level_settings(levels: list[Obj], total: int) -> list[LevelSettings]:
    shares = {name_of(one): _shares(one) for one in levels}
    sum_of_shares = sum(shares.values()) or 1
    found = []
    for one in levels:
        spec = one.get("spec") or {}
        exempt = spec.get("type") == "Exempt"
        limits = spec.get("exempt" if exempt else "limited") or {}
        seats = math.ceil(total * shares[name_of(one)] / sum_of_shares)
        borrowing = limits.get("borrowingLimitPercent")
        queuing = (limits.get("limitResponse") or {}).get("queuing") or {}
        found.append(
            LevelSettings(
                name_of(one), uid_of(one), exempt, seats,
                round(seats * int(limits.get("lendablePercent") or 0) / 100),
                total if borrowing is None else math.ceil(seats * int(borrowing) / 100),
                int(queuing.get("queues") or 64) if queuing else 0,
                int(queuing.get("handSize") or 8) if queuing else 0,
                int(queuing.get("queueLengthLimit") or 50) if queuing else 0,
            )
        )  # fmt: skip
    return found


def _shares(level: Obj) -> int:
    spec = level.get("spec") or {}
    if spec.get("type") == "Exempt":
        return int((spec.get("exempt") or {}).get("nominalConcurrencyShares") or 0)
    shares = (spec.get("limited") or {}).get("nominalConcurrencyShares")
    return 30 if shares is None else int(shares)
