"""API priority and fairness: seats and fair queues for requests.

Job: classify a request, get it a seat in its priority level, or refuse it with 429.
Invariant: long-running requests (exec, attach, port-forward, proxied) hold no seat; a watch holds
    one until its first events are on their way.
Invariant: when nobody waits, a request pays for one dictionary look-up and two counters.
"""

import asyncio
import hashlib
import math
from collections.abc import Callable
from functools import partial

from sampan.api.errors import TooManyRequests
from sampan.api.objects import Obj, name_of, spec_of, uid_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.flow.dumps import State
from sampan.apiserver.flow.in_flight import Headers
from sampan.apiserver.flow.levels import (
    Asked,
    Hand,
    Level,
    LevelSettings,
    Queue,
    Running,
    Seat,
    Turns,
)
from sampan.apiserver.flow.objects import level_of
from sampan.apiserver.flow.schemas import Flow, Schemas
from sampan.apiserver.http.request import RequestInfo
from sampan.core.bounded import Bounded
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.metrics import Labels, Metrics

MOST = 4096  # classifications that are remembered
MOST_PATH = 1024  # characters: anybody may send a long one, and not all of them are worth keeping
WAIT_SECONDS = 15.0
SCHEMA_HEADER, LEVEL_HEADER = "x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"
OBJECTS_PER_SEAT = 100
_WAITS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
MOST_SEATS = 10


@dataclass(slots=True, eq=False)
class _Known:
    """A flow that has been seen: where it belongs, and how often it was served."""

    flow: Flow
    level: Level
    hand: Hand
    headers: Headers
    running: Running
    dispatched: int = 0
    waited: int = 0  # of those

    def serve(self, seat: Seat, asked: Asked) -> Seat:
        self.dispatched += 1
        seat.headers, seat.asked = self.headers, asked
        running = seat.running = self.running
        running.served.add(seat)
        running.seats += seat.seats or 1
        return seat


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
        self._turns = Turns(self._next_turn)
        self._known: Bounded[tuple[object, ...], _Known] = Bounded(MOST, self._forgotten)
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
        self._running: dict[Labels, Running] = {}  # by flow schema and priority level
        self._waiting: dict[object, tuple[Flow, Asked]] = {}
        self._configured: frozenset[str] = frozenset()  # the others only end what they have
        self._show_running(metrics)
        metrics.gauge(
            "apiserver_flowcontrol_nominal_limit_seats",
            "Nominal number of execution seats configured for each priority level",
            ("priority_level",),
        ).read_from(lambda: {(k,): float(v.settings.seats) for k, v in self._levels.items()})
        self._waits = metrics.histogram(
            "apiserver_flowcontrol_request_wait_duration_seconds",
            "Length of time a request spent waiting in its queue",
            ("execute", *labels),
            _WAITS,
        )

    def _show_running(self, metrics: Metrics) -> None:
        shown: tuple[tuple[str, str, Callable[[Running], int]], ...] = (
            ("inqueue_requests", "Number of requests currently pending in queues of the API "
             "Priority and Fairness subsystem", lambda now: now.waiting),
            ("executing_requests", "Number of requests in initial (for a WATCH) or any (for a "
             "non-WATCH) execution stage in the API Priority and Fairness subsystem",
             lambda now: len(now.served)),
            ("executing_seats", "Concurrency (number of seats) occupied by the currently "
             "executing (initial stage for a WATCH, any stage otherwise) requests in the API "
             "Priority and Fairness subsystem", lambda now: now.seats),
        )  # fmt: skip
        for name, text, count in shown:
            metrics.gauge(
                f"apiserver_flowcontrol_current_{name}", text, ("flow_schema", "priority_level")
            ).read_from(partial(self._now, count))

    def _now(self, count: Callable[[Running], int]) -> dict[Labels, float]:
        self._tell()
        return {labels: float(count(now)) for labels, now in self._running.items()}

    def changed(self) -> None:
        """A schema or a level is another one now."""
        self._schemas = None
        self._tell()
        self._known.clear()

    def take(
        self, user: User, info: RequestInfo | None, path: str, verb: str, now: float
    ) -> Seat | None:
        """A seat at once, where there is one; else whoever asks must `wait`. Whoever gets a seat
        must leave it. `now` is the clock's monotonic time: the caller knows it already."""
        flow = self._classify(user, info, path, verb)
        level = flow.level
        seats = 1
        if verb == "list" and info is not None and not level.settings.exempt:
            seats = self._seats(level, info)
        seat = level.take(flow.hand, seats, now)
        if seat is None:
            return None
        return flow.serve(seat, Asked(flow.flow.distinguisher, user.name, verb, path, info, now))

    async def wait(self, user: User, info: RequestInfo | None, path: str, verb: str) -> Seat:
        """Raises TooManyRequests."""
        flow = self._classify(user, info, path, verb)
        seats = self._seats(flow.level, info) if verb == "list" and info is not None else 1
        since, labels = self._clock.monotonic(), (flow.flow.schema, flow.flow.level)
        asked = Asked(flow.flow.distinguisher, user.name, verb, path, info, since)
        try:
            seat = await self._wait_for_turn(flow, seats, asked)
        except TooManyRequests:
            self._waits.observe(self._clock.monotonic() - since, "false", *labels)
            raise
        self._waits.observe(self._clock.monotonic() - since, "true", *labels)
        flow.waited += 1
        return flow.serve(seat, asked)

    async def seat(self, user: User, info: RequestInfo | None, path: str, verb: str) -> Seat:
        """Raises TooManyRequests."""
        now = self._clock.monotonic()
        return self.take(user, info, path, verb, now) or await self.wait(user, info, path, verb)

    def _seats(self, level: Level, info: RequestInfo) -> int:
        wanted = min(MOST_SEATS, 1 + self._count(info) // OBJECTS_PER_SEAT)
        return min(wanted, max(1, level.settings.seats))

    async def _wait_for_turn(self, flow: "_Known", seats: int, asked: Asked) -> Seat:
        level = flow.level
        place = level.line_up(flow.hand, seats)
        if place is None:
            reason = "queue-full" if level.settings.queues else "concurrency-limit"
            raise self._refusal(flow, reason)
        future, queue = place
        handle = self._loop_timer(future)
        called = False
        flow.running.waiting += 1
        self._waiting[future] = (flow.flow, asked)
        try:
            await future
            called = True
        except TimeoutError as error:
            level.cancelled += 1
            raise self._refusal(flow, "time-out") from error
        except asyncio.CancelledError:  # whoever asked is gone: as upstream, that is late, too
            level.cancelled += 1
            self._refusal(flow, "time-out")
            raise
        finally:
            flow.running.waiting -= 1
            del self._waiting[future]
            handle.cancel()
            if not called:
                self._give_up(level, future, queue, seats)
        return level.dispatched(queue, seats, self._clock.monotonic())

    def _give_up(
        self, level: Level, future: "asyncio.Future[None]", queue: Queue, seats: int
    ) -> None:
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

    def _refusal(self, known: "_Known", reason: str) -> TooManyRequests:
        known.level.rejected += 1
        self._rejected.add(known.flow.schema, known.flow.level, reason)
        return TooManyRequests("Too many requests, please try again later.", retry_after_seconds=1)

    def _classify(self, user: User, info: RequestInfo | None, path: str, verb: str) -> "_Known":
        key: tuple[object, ...]
        if info is not None and info.resource is not None:
            key = (
                user.name, user.groups, verb, info.resource.plural, info.resource.group,
                info.subresource, info.namespace,
            )  # fmt: skip
        else:
            key = (user.name, user.groups, verb, path)
        if len(path) > MOST_PATH:
            return self._find_flow(user, info, path, verb)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._find_flow(user, info, path, verb)
        return known

    def _find_flow(self, user: User, info: RequestInfo | None, path: str, verb: str) -> "_Known":
        if self._schemas is None:
            self._rebuild()
            leading = [
                schema
                for schema in self._read_schemas()
                if level_of(spec_of(schema)) in self._levels
            ]
            self._schemas = Schemas(leading)
        flow = self._schemas.flow(user, verb, info, path)
        if flow is None:
            flow = Flow("catch-all", "", "catch-all", user.name)
        level = self._levels.get(flow.level)
        if level is None:  # not even catch-all: nothing has been bootstrapped yet
            settings = LevelSettings(flow.level, "", True, 0, 0, 0, 0, 0, 0)
            level = self._levels[flow.level] = Level(settings, self._to_borrow, self._turns)
        digest = hashlib.sha256(f"{flow.schema}\0{flow.distinguisher}".encode()).digest()
        hand = level.hand(int.from_bytes(digest[:8], "big"))
        headers = ((SCHEMA_HEADER, flow.schema_uid), (LEVEL_HEADER, level.settings.uid))
        running = self._running.setdefault((flow.schema, flow.level), Running())
        return _Known(flow, level, hand, headers, running)

    def _tell(self) -> None:
        """Counting costs more than serving: it is done when somebody looks."""
        for known in self._known.values():
            self._count_dispatched(known)

    def _forgotten(self, _key: object, known: "_Known") -> None:
        self._count_dispatched(known)

    def _count_dispatched(self, known: "_Known") -> None:
        if known.dispatched:
            flow = known.flow
            self._dispatched.add(flow.schema, flow.level, by=float(known.dispatched))
            known.level.dispatched_requests += known.dispatched
            if not known.level.settings.exempt:
                at_once = known.dispatched - known.waited
                self._waits.observe(0.0, "true", flow.schema, flow.level, times=at_once)
            known.dispatched = known.waited = 0

    def _rebuild(self) -> None:
        """Levels that are there keep who sits and waits in them, if they are what they were."""
        wanted = {
            setting.name: setting for setting in level_settings(self._read_levels(), self._total)
        }
        self._configured = frozenset(wanted)
        for name, settings in wanted.items():
            known = self._levels.get(name)
            if known is None or known.settings != settings:
                if known is not None and not known.in_use and not known.queued:
                    known = None
                if known is None:
                    self._levels[name] = Level(settings, self._to_borrow, self._turns)
                elif known.settings.queues == settings.queues:
                    known.settings = settings
        for name in [level for level in self._levels if level not in wanted]:
            if not self._levels[name].in_use and not self._levels[name].queued:
                del self._levels[name]

    def state(self) -> State:
        """For who looks at it."""
        self._tell()
        now, wall = self._clock.monotonic(), self._clock.now()
        return State(
            self._levels, self._configured, self._running, self._waiting, wall - now
        )  # fmt: skip

    def _next_turn(self) -> None:
        """Whoever waits goes on; the level that uses the least of its seats first."""
        waiting = [item for item in self._levels.values() if item.queued]
        waiting.sort(key=lambda item: item.in_use / max(1, item.settings.seats))
        for level in waiting:
            level.dispatch()

    def _to_borrow(self, borrower: Level) -> int:
        lent = sum(
            level.idle_lendable() for level in self._levels.values() if level is not borrower
        )
        return min(borrower.settings.borrowable, lent)


def level_settings(levels: list[Obj], total: int) -> list[LevelSettings]:
    shares = [_shares(level) for level in levels]
    sum_of_shares = sum(shares) or 1
    return [
        _settings_of(level, math.ceil(total * share / sum_of_shares), total)
        for level, share in zip(levels, shares, strict=True)
    ]


def _settings_of(level: Obj, seats: int, total: int) -> LevelSettings:
    spec = spec_of(level)
    exempt = spec.get("type") == "Exempt"
    limits = spec.get("exempt" if exempt else "limited") or {}
    borrowing = limits.get("borrowingLimitPercent")
    queuing = (limits.get("limitResponse") or {}).get("queuing") or {}
    queues, hand_size, longest = (
        int(queuing.get(name) or default) if queuing else 0 for name, default in _QUEUING.items()
    )
    return LevelSettings(
        name_of(level), uid_of(level), exempt, seats,
        round(seats * int(limits.get("lendablePercent") or 0) / 100),
        total if borrowing is None else math.ceil(seats * int(borrowing) / 100),
        queues, hand_size, longest,
    )  # fmt: skip


_QUEUING = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}  # with upstream's defaults


def _shares(level: Obj) -> int:
    spec = level.get("spec") or {}
    if spec.get("type") == "Exempt":
        return int((spec.get("exempt") or {}).get("nominalConcurrencyShares") or 0)
    shares = (spec.get("limited") or {}).get("nominalConcurrencyShares")
    return 30 if shares is None else int(shares)
